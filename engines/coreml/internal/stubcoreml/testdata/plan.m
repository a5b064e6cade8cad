// Compute plans, read off the plist: an operation is a dictionary of name, device
// (N, G, C, "?" for a usage without a device, "X" for a device of no known class;
// none for no usage), supported devices, cost and inner blocks.
#include "stub.h"

int stub_live_plans;

@interface MLCPUComputeDevice : NSObject @end
@interface MLGPUComputeDevice : NSObject @end
@interface MLNeuralEngineComputeDevice : NSObject @end
@implementation MLCPUComputeDevice @end
@implementation MLGPUComputeDevice @end
@implementation MLNeuralEngineComputeDevice
- (long)totalCoreCount { return 16; }
@end

static id device(unichar c) {
	Class k = c == 'N' ? [MLNeuralEngineComputeDevice class] : c == 'G' ? [MLGPUComputeDevice class]
		: c == 'C' ? [MLCPUComputeDevice class] : c == 'X' ? [NSObject class] : Nil;
	return [[k new] autorelease];
}

@interface MLComputePlanCost : NSObject { @public double weight; } @end
@implementation MLComputePlanCost
- (double)weight { return weight; }
@end

// The classes of a plan's structure all wrap one part of the plist.
#define WRAPPER(Name) @interface Name : NSObject { @public id plist; } @end
WRAPPER(MLComputePlanDeviceUsage)
WRAPPER(MLModelStructureProgramOperation)
WRAPPER(MLModelStructureProgramBlock)
WRAPPER(MLModelStructureProgramFunction)
WRAPPER(MLModelStructureProgram)
WRAPPER(MLModelStructureNeuralNetworkLayer)
WRAPPER(MLModelStructureNeuralNetwork)
WRAPPER(MLModelStructurePipeline)
WRAPPER(MLModelStructure)

// The plist lives as long as the plan, so it is not retained here.
static id wrap(Class c, id plist) {
	if (!plist) return nil;
	MLModelStructure *w = [[c new] autorelease];
	w->plist = plist;
	return w;
}

static NSArray *wrapAll(Class c, NSArray *plists) {
	if (!plists) return nil;
	NSMutableArray *all = [NSMutableArray array];
	for (id p in plists) [all addObject:wrap(c, p)];
	return all;
}

@implementation MLComputePlanDeviceUsage
- (id)preferredComputeDevice { return device([[plist objectForKey:@"device"] characterAtIndex:0]); }
- (NSArray *)supportedComputeDevices {
	NSString *s = [plist objectForKey:@"supported"];
	NSMutableArray *all = [NSMutableArray array];
	for (NSUInteger i = 0; i < [s length]; i++) [all addObject:device([s characterAtIndex:i])];
	return all;
}
@end
@implementation MLModelStructureProgramOperation
- (NSString *)operatorName { return [plist objectForKey:@"name"]; }
- (NSArray *)blocks { return wrapAll([MLModelStructureProgramBlock class], [plist objectForKey:@"blocks"]); }
@end
@implementation MLModelStructureProgramBlock
- (NSArray *)operations { return wrapAll([MLModelStructureProgramOperation class], plist); }
@end
@implementation MLModelStructureProgramFunction
- (id)block { return wrap([MLModelStructureProgramBlock class], plist); }
@end
@implementation MLModelStructureProgram
- (NSDictionary *)functions {
	NSMutableDictionary *all = [NSMutableDictionary dictionary];
	for (NSString *name in plist)
		[all setObject:wrap([MLModelStructureProgramFunction class], [plist objectForKey:name]) forKey:name];
	return all;
}
@end
@implementation MLModelStructureNeuralNetworkLayer
- (NSString *)type { return [plist objectForKey:@"name"]; }
@end
@implementation MLModelStructureNeuralNetwork
- (NSArray *)layers { return wrapAll([MLModelStructureNeuralNetworkLayer class], plist); }
@end
@implementation MLModelStructurePipeline
- (NSArray *)subModels { return wrapAll([MLModelStructure class], plist); }
@end
@implementation MLModelStructure
- (id)program { return wrap([MLModelStructureProgram class], [plist objectForKey:@"program"]); }
- (id)neuralNetwork { return wrap([MLModelStructureNeuralNetwork class], [plist objectForKey:@"network"]); }
- (id)pipeline { return wrap([MLModelStructurePipeline class], [plist objectForKey:@"pipeline"]); }
@end

@interface MLComputePlan : NSObject { @public NSDictionary *model; } @end
@implementation MLComputePlan
+ (void)loadContentsOfURL:(NSURL *)url configuration:(MLModelConfiguration *)c completionHandler:(id)handler {
	NSDictionary *model = [NSDictionary dictionaryWithContentsOfFile:[[url path] stringByAppendingPathComponent:@"stub.plist"]];
	if (hasFault(model, @"plan_error")) {
		answer(handler, nil, stubError(0, @"E5RT: Failed to PropagateInputTensorShapes."));
		return;
	}
	if (hasFault(model, @"plan_hang")) return;
	if (hasFault(model, @"plan_nil")) { answer(handler, nil, nil); return; }
	// The plan of other units than were asked for would be another plan.
	NSString *units = [model objectForKey:@"plan_units"];
	if (units && c->units != [units longLongValue]) {
		answer(handler, nil, stubError(9, @"The compute units are other ones."));
		return;
	}
	MLComputePlan *p = [[self new] autorelease];
	p->model = [model retain];
	__sync_add_and_fetch(&stub_live_plans, 1);
	answer(handler, p, nil);
}
- (id)modelStructure { return wrap([MLModelStructure class], [model objectForKey:@"plan"]); }
static id usage(MLModelStructureProgramOperation *o) {
	return [o->plist objectForKey:@"device"] ? wrap([MLComputePlanDeviceUsage class], o->plist) : nil;
}
- (id)computeDeviceUsageForMLProgramOperation:(id)o { return usage(o); }
- (id)computeDeviceUsageForNeuralNetworkLayer:(id)l { return usage(l); }
- (id)estimatedCostOfMLProgramOperation:(MLModelStructureProgramOperation *)o {
	NSString *cost = [o->plist objectForKey:@"cost"];
	if (!cost) return nil;
	MLComputePlanCost *c = [[MLComputePlanCost new] autorelease];
	c->weight = [cost doubleValue];
	return c;
}
- (void)dealloc { __sync_sub_and_fetch(&stub_live_plans, 1); [model release]; [super dealloc]; }
@end
