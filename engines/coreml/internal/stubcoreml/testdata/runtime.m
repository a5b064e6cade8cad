// What Apple's runtime exports and GCC's has not: objc_msgSend and the functions
// of autorelease pools. The bridge calls both by their C names.
#include "stub.h"
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#if defined(__x86_64__)
asm(".globl objc_msgSend\n"
    ".type objc_msgSend, @function\n"
    "objc_msgSend:\n"
    "	test %rdi, %rdi\n"
    "	jz 1f\n"
    "	push %rdi; push %rsi; push %rdx; push %rcx; push %r8; push %r9\n"
    "	sub $8, %rsp\n"
    "	call objc_msg_lookup@PLT\n"
    "	add $8, %rsp\n"
    "	pop %r9; pop %r8; pop %rcx; pop %rdx; pop %rsi; pop %rdi\n"
    "	jmp *%rax\n"
    "1:	xor %eax, %eax\n"
    "	xor %edx, %edx\n"
    "	pxor %xmm0, %xmm0\n"
    "	ret\n");
#elif defined(__aarch64__)
asm(".globl objc_msgSend\n"
    ".type objc_msgSend, %function\n"
    "objc_msgSend:\n"
    "	cbz x0, 1f\n"
    "	stp x29, x30, [sp, #-80]!\n"
    "	stp x0, x1, [sp, #16]\n"
    "	stp x2, x3, [sp, #32]\n"
    "	stp x4, x5, [sp, #48]\n"
    "	stp x6, x7, [sp, #64]\n"
    "	bl objc_msg_lookup\n"
    "	mov x16, x0\n"
    "	ldp x0, x1, [sp, #16]\n"
    "	ldp x2, x3, [sp, #32]\n"
    "	ldp x4, x5, [sp, #48]\n"
    "	ldp x6, x7, [sp, #64]\n"
    "	ldp x29, x30, [sp], #80\n"
    "	br x16\n"
    "1:	mov x1, xzr\n"
    "	movi d0, #0\n"
    "	ret\n");
#endif

void *objc_autoreleasePoolPush(void) { return [[NSAutoreleasePool alloc] init]; }
void objc_autoreleasePoolPop(void *pool) { [(NSAutoreleasePool *)pool drain]; }

NSString *MLModelCreatorDefinedKey = @"MLModelCreatorDefinedKey";

const char *stub_version(void) { return "15.1"; }
const char *stub_build(void) { return "24B83"; }
const char *stub_chip(void) { return "stub"; }

NSError *stubError(int code, NSString *text) {
	return [NSError errorWithDomain:@"com.apple.CoreML" code:code
		userInfo:[NSDictionary dictionaryWithObject:text forKey:NSLocalizedDescriptionKey]];
}

NSArray *numbers(const long *values, int n) {
	NSMutableArray *a = [NSMutableArray array];
	for (int i = 0; i < n; i++) [a addObject:[NSNumber numberWithLongLong:values[i]]];
	return a;
}

long total(NSArray *shape) {
	long n = 1;
	for (NSUInteger i = 0; i < [shape count]; i++) n *= [[shape objectAtIndex:i] longLongValue];
	return n;
}

struct answer { Block *handler; id value, error; };

static void *deliver(void *p) {
	struct answer *a = p;
	NSAutoreleasePool *pool = [NSAutoreleasePool new];
	a->handler->invoke(a->handler, a->value, a->error);
	[a->value release];
	[a->error release];
	[pool drain];
	free(a);
	return NULL;
}

void answer(id handler, id value, NSError *error) {
	struct answer *a = malloc(sizeof *a);
	a->handler = (Block *)handler;
	a->value = [value retain];
	a->error = [error retain];
	pthread_t thread;
	pthread_create(&thread, NULL, deliver, a);
	pthread_detach(thread);
}

BOOL hasFault(NSDictionary *model, NSString *fault) {
	return [[model objectForKey:@"fault"] isEqualToString:fault];
}

void die(int sig) {
	signal(sig, SIG_DFL);
	kill(getpid(), sig);
	pause();
}
