// Arrays, values and providers. Arrays are padded as the Neural Engine's are, and
// count how many of them live.
#include "stub.h"

int stub_live_arrays, stub_live_values, stub_live_configurations;

// Input rows are this many elements longer than they hold.
enum { rowPadding = 5 };

@implementation MLModelConfiguration
- (id)init { __sync_add_and_fetch(&stub_live_configurations, 1); return [super init]; }
- (void)setComputeUnits:(long)u { units = u; }
- (void)setFunctionName:(NSString *)name { [function release]; function = [name copy]; }
- (void)dealloc { __sync_sub_and_fetch(&stub_live_configurations, 1); [function release]; [super dealloc]; }
@end

@implementation MLMultiArray
- (id)initWithShape:(NSArray *)s strides:(NSArray *)t dataType:(long)d size:(long)n {
	if ((self = [super init])) {
		shape = [s copy]; strides = [t copy]; type = d; size = n;
		bytes = malloc(n);
		memset(bytes, 0xff, n); // NaN in every float type: padding that is read shows
		__sync_add_and_fetch(&stub_live_arrays, 1);
	}
	return self;
}

- (id)initWithShape:(NSArray *)s dataType:(long)d error:(NSError **)e {
	if (d != Int32 || [s count] != 2 || total(s) <= 0) {
		*e = stubError(1, @"The shape or data type cannot be.");
		[self release];
		return nil;
	}
	long stride[2] = {[[s objectAtIndex:1] longLongValue] + rowPadding, 1};
	long rows = [[s objectAtIndex:0] longLongValue];
	rowStride = stride[0];
	return [self initWithShape:s strides:numbers(stride, 2) dataType:d size:4 * rows * rowStride];
}

- (long)dataType { return type; }
- (NSArray *)shape { return shape; }
- (NSArray *)strides { return strides; }
- (void)getBytesWithHandler:(id)h { if (!hidden) ((Block *)h)->invoke(h, bytes, size); }
- (void)getMutableBytesWithHandler:(id)h { ((Block *)h)->invoke(h, bytes, size, strides); }

- (void)dealloc {
	if (shape) __sync_sub_and_fetch(&stub_live_arrays, 1);
	free(bytes);
	[shape release];
	[strides release];
	[super dealloc];
}
@end

@implementation MLFeatureValue
+ (id)featureValueWithMultiArray:(MLMultiArray *)a {
	MLFeatureValue *v = [[self new] autorelease];
	v->array = [a retain];
	__sync_add_and_fetch(&stub_live_values, 1);
	return v;
}
- (id)multiArrayValue { return array; }
- (void)dealloc { __sync_sub_and_fetch(&stub_live_values, 1); [array release]; [super dealloc]; }
@end

@implementation MLDictionaryFeatureProvider
- (id)initWithDictionary:(NSDictionary *)d error:(NSError **)e {
	if ((self = [super init])) values = [d copy];
	return self;
}
- (id)featureValueForName:(NSString *)name { return [values objectForKey:name]; }
- (void)dealloc { [values release]; [super dealloc]; }
@end

@implementation MLArrayBatchProvider
- (id)initWithFeatureProviderArray:(NSArray *)a {
	if ((self = [super init])) providers = [a copy];
	return self;
}
- (long)count { return [providers count]; }
- (id)featuresAtIndex:(long)i { return [providers objectAtIndex:i]; }
- (void)dealloc { [providers release]; [super dealloc]; }
@end
