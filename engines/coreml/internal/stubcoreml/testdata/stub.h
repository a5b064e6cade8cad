// A stub of Core ML over GCC's Objective-C runtime and GNUstep's Foundation. A
// "model" is a directory with a stub.plist, which says what the model describes,
// answers and plans, and what goes wrong; models.go writes it.
#import <Foundation/Foundation.h>

typedef struct { // a block literal, as its ABI lays it out
	void *isa;
	int flags, reserved;
	void (*invoke)(void *, ...);
	void *descriptor;
} Block;

enum { Float64 = 0x10040, Float32 = 0x10020, Float16 = 0x10010, Int32 = 0x20020 };

NSError *stubError(int code, NSString *text);
NSArray *numbers(const long *values, int n);
long total(NSArray *shape);
// Calls handler(value, error) on a thread of its own.
void answer(id handler, id value, NSError *error);
// Whether the model at hand has this fault.
BOOL hasFault(NSDictionary *model, NSString *fault);
// Ends the process by the signal that a native fault raises.
void die(int signal);

@interface MLModelConfiguration : NSObject {
@public
	long units;
	NSString *function;
}
@end

@interface MLMultiArray : NSObject {
@public
	NSArray *shape, *strides;
	long type, size, rowStride; // rowStride of inputs only
	char *bytes;
	BOOL hidden; // shows nobody its memory
}
- (id)initWithShape:(NSArray *)s strides:(NSArray *)t dataType:(long)d size:(long)n;
@end

@interface MLFeatureValue : NSObject {
@public
	MLMultiArray *array;
}
+ (id)featureValueWithMultiArray:(MLMultiArray *)a;
- (id)multiArrayValue;
@end

@interface MLDictionaryFeatureProvider : NSObject {
@public
	NSDictionary *values;
}
- (id)initWithDictionary:(NSDictionary *)d error:(NSError **)e;
- (id)featureValueForName:(NSString *)name;
@end

@interface MLArrayBatchProvider : NSObject {
@public
	NSArray *providers;
}
- (id)initWithFeatureProviderArray:(NSArray *)a;
- (long)count;
- (id)featuresAtIndex:(long)i;
@end

@interface MLModelDescription : NSObject {
@public
	NSDictionary *model;
}
+ (id)of:(NSDictionary *)model;
@end
