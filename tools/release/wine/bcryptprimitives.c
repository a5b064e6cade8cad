/* bcryptprimitives.dll for wine 8, which has none. Go programs take their random
 * numbers from its ProcessPrng; this one forwards to the generator of advapi32
 * (RtlGenRandom, whose exported name is SystemFunction036). For tests only. */
#include <windows.h>

BOOLEAN NTAPI SystemFunction036(PVOID buffer, ULONG length);

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T length) {
	const ULONG most = 1u << 30;
	while (length > most) {
		if (!SystemFunction036(data, most)) return FALSE;
		data += most;
		length -= most;
	}
	return SystemFunction036(data, (ULONG)length);
}
