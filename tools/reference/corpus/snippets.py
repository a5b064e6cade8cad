"""Source code, data formats and addresses: texts that are punctuation and rare word pieces for the most part."""

CODE = {
    "go": "func sum(xs []int) (total int) {\n\tfor _, x := range xs {\n\t\ttotal += x\n\t}\n\treturn total\n}\n",
    "python": 'def fib(n: int) -> int:\n    """The n-th Fibonacci number."""\n    a, b = 0, 1\n    for _ in range(n):\n        a, b = b, a + b\n    return a\n',
    "rust": "fn longest<'a>(x: &'a str, y: &'a str) -> &'a str {\n    if x.len() >= y.len() { x } else { y }\n}\n",
    "c": '#include <stdio.h>\nint main(void) { for (int i = 0; i < 3; i++) printf("%d\\n", i * i); return 0; }\n',
    "cpp": "template <typename T> auto clamp(const T& v, const T& lo, const T& hi) -> const T& { return v < lo ? lo : hi < v ? hi : v; }",
    "java": "public static boolean isLeap(int y) { return y % 4 == 0 && (y % 100 != 0 || y % 400 == 0); }",
    "javascript": "const byAge = people.filter(p => p.age >= 18).map(({ name, age }) => `${name}: ${age}`);",
    "typescript": "type Result<T, E = Error> = { ok: true; value: T } | { ok: false; error: E };",
    "haskell": "quicksort (p:xs) = quicksort [x | x <- xs, x < p] ++ [p] ++ quicksort [x | x <- xs, x >= p]",
    "sql": "SELECT c.name, COUNT(*) AS n FROM orders o JOIN customers c ON c.id = o.customer_id WHERE o.placed >= '2024-01-01' GROUP BY c.name HAVING COUNT(*) > 3 ORDER BY n DESC;",
    "shell": 'find . -name "*.log" -mtime +7 -print0 | xargs -0 gzip -9 && echo "done: $?"',
    "assembly": "mov rax, [rdi+8*rcx]\nvfmadd231ps ymm0, ymm1, ymm2\njne .loop",
    "css": ".card > h2:first-child { margin: 0 auto; color: #1a2b3c; transform: translate(-50%, 2rem); }",
    "regex": r"^(?:[A-Za-z0-9._%+-]+)@(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,}$",
}

DATA = {
    "json": '{"id": 42, "tags": ["alpha", "beta"], "nested": {"ok": true, "ratio": 0.125, "none": null}}',
    "yaml": 'server:\n  port: 8080\n  hosts: [a.example, b.example]\n  tls: { enabled: yes, min: "1.3" }\n',
    "toml": '[package]\nname = "demo"\nversion = "0.3.1"\n\n[[bin]]\npath = "src/main.rs"\n',
    "xml": '<?xml version="1.0"?><order id="7"><item sku="A-1" qty="2"/><note>Leave &amp; ring</note></order>',
    "csv": 'date,city,high,low\n2024-03-01,Oslo,4.5,-2.0\n2024-03-02,"Rome, centre",17.0,9.5\n',
    "log": '2024-06-30T23:59:60Z WARN  [pool-3] retry=2 peer=10.0.0.17:5432 err="connection reset by peer" took=1532ms',
    "diff": "--- a/limits.go\n+++ b/limits.go\n@@ -1,2 +1,2 @@\n-const max = 256\n+const max = 512\n",
    "markdown": "# Title\n\n- **bold** and _italic_\n- [link](https://example.org/a?b=c#d)\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
    "base64": "U3luYXBzZSB3b3JrZXJzIHR1cm4gdG9rZW4gaWRzIGludG8gdmVjdG9ycy4=",
    "hex": "de ad be ef 00 ff 7f 80 53 59 4e 41 50 53 45",
    "latex": r"\int_{0}^{\infty} e^{-x^{2}} \, dx = \frac{\sqrt{\pi}}{2}",
}

ADDRESSES = {
    "url": "https://user@example.com:8443/search/results.html?q=caf%C3%A9+au+lait&page=12&sort=-date#section-4.2",
    "url-long": "http://example.org/"
    + "/".join(f"level{n}" for n in range(24))
    + "/index.php?"
    + "&".join(f"k{n}=v{n}" for n in range(24)),
    "email": "Write to first.last+newsletter@mail.example.co.uk or to postmaster@example.org.",
    "path": r"C:\Program Files\Example\bin\tool.exe and /usr/local/share/example/data.v2.tar.gz",
    "ipv6": "2001:db8:85a3::8a2e:370:7334/64 via fe80::1%eth0",
    "uuid": "urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
}


def rows():
    """Yields (text, tags) for code, data formats and addresses."""
    for kind, texts in (("code", CODE), ("data", DATA), ("address", ADDRESSES)):
        for name, text in texts.items():
            yield text, [f"{kind}:{name}"]
