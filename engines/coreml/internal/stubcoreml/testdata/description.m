// What a model says of itself, read off its plist.
#include "stub.h"

@interface MLMultiArrayShapeConstraint : NSObject { @public NSDictionary *feature; } @end
@interface MLMultiArrayConstraint : NSObject { @public NSDictionary *feature; } @end
@interface MLFeatureDescription : NSObject { @public NSDictionary *feature; } @end

// The plist's own objects live as long as the model, so none is retained here.
static id about(Class c, NSDictionary *feature) {
	MLFeatureDescription *d = [[c new] autorelease]; // the three classes have one layout
	d->feature = feature;
	return d;
}

@implementation MLMultiArrayShapeConstraint
- (long)type { return [feature objectForKey:@"shapes"] ? 2 : [feature objectForKey:@"ranges"] ? 3 : 1; }
- (NSArray *)enumeratedShapes { return [feature objectForKey:@"shapes"]; }
- (NSArray *)sizeRangeForDimension {
	NSMutableArray *ranges = [NSMutableArray array];
	for (NSArray *r in [feature objectForKey:@"ranges"]) {
		long least = [[r objectAtIndex:0] longLongValue], most = [[r objectAtIndex:1] longLongValue];
		NSUInteger length = most ? most - least + 1 : NSIntegerMax - least;
		[ranges addObject:[NSValue valueWithRange:NSMakeRange(least, length)]];
	}
	return ranges;
}
@end

@implementation MLMultiArrayConstraint
- (NSArray *)shape { return [feature objectForKey:@"shape"]; }
- (long)dataType { return [[feature objectForKey:@"type"] longLongValue]; }
- (id)shapeConstraint { return about([MLMultiArrayShapeConstraint class], feature); }
@end

@implementation MLFeatureDescription
- (BOOL)isOptional { return [[feature objectForKey:@"optional"] boolValue]; }
- (id)multiArrayConstraint {
	return [feature objectForKey:@"type"] ? about([MLMultiArrayConstraint class], feature) : nil;
}
@end

@implementation MLModelDescription
+ (id)of:(NSDictionary *)model {
	MLModelDescription *d = [[self new] autorelease];
	d->model = [model retain];
	return d;
}

static NSDictionary *descriptions(NSDictionary *features) {
	if (!features) return nil;
	NSMutableDictionary *all = [NSMutableDictionary dictionary];
	for (NSString *name in features)
		[all setObject:about([MLFeatureDescription class], [features objectForKey:name]) forKey:name];
	return all;
}
- (NSDictionary *)inputDescriptionsByName { return descriptions([model objectForKey:@"inputs"]); }
- (NSDictionary *)outputDescriptionsByName { return descriptions([model objectForKey:@"outputs"]); }
- (NSDictionary *)metadata {
	NSDictionary *own = [model objectForKey:@"metadata"];
	extern NSString *MLModelCreatorDefinedKey;
	return own ? [NSDictionary dictionaryWithObject:own forKey:MLModelCreatorDefinedKey] : nil;
}
- (void)dealloc { [model release]; [super dealloc]; }
@end
