/* For Windows: zig's start-up code of libraries defines atexit, and lld, which
 * exports what is not hidden, would export it from every one of them. */
__asm__(".section .drectve\n\t.ascii \" -exclude-symbols:atexit\"\n\t.text\n");
