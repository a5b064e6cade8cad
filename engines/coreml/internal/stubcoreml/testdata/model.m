// Compile, load, predict. A token's state is a small fraction that float16 holds
// exactly, so that a test knows every answer.
#include "stub.h"
#include <signal.h>
#include <unistd.h>

int stub_live_models, stub_compiles;

@interface MLModel : NSObject { @public NSDictionary *model; long units, runs; BOOL shrink; } @end

// Component j of the state of a token.
static double state(int id, int type, long j) { return ((id * 7 + type * 3 + j * 5) % 64 - 32) / 16.0; }

static NSDictionary *plist(NSString *dir) {
	return [NSDictionary dictionaryWithContentsOfFile:[dir stringByAppendingPathComponent:@"stub.plist"]];
}

@implementation MLModel
+ (void)compileModelAtURL:(NSURL *)url completionHandler:(id)handler {
	NSDictionary *model = plist([url path]);
	if (!model || hasFault(model, @"compile_error")) {
		answer(handler, nil, stubError(3, @"Unable to parse the model."));
		return;
	}
	if (hasFault(model, @"compile_segv")) die(SIGSEGV);
	__sync_add_and_fetch(&stub_compiles, 1);
	// Core ML writes to the system's temporary directory. A confined worker on
	// Linux may write to its cache only, which is where the package lies.
	NSString *unique = [[NSProcessInfo processInfo] globallyUniqueString];
	NSString *out = [[[url path] stringByDeletingLastPathComponent] stringByAppendingPathComponent:
		[unique stringByAppendingPathExtension:@"mlmodelc"]];
	NSFileManager *files = [NSFileManager defaultManager];
	[files createDirectoryAtPath:out withIntermediateDirectories:YES attributes:nil error:NULL];
	[model writeToFile:[out stringByAppendingPathComponent:@"stub.plist"] atomically:YES];
	[@"stub" writeToFile:[out stringByAppendingPathComponent:@"coremldata.bin"] atomically:NO];
	NSString *weights = [out stringByAppendingPathComponent:@"weights.bin"];
	[[NSData data] writeToFile:weights atomically:NO];
	truncate([weights fileSystemRepresentation], [[model objectForKey:@"compiled_bytes"] longLongValue]);
	answer(handler, [NSURL fileURLWithPath:out], nil);
}

+ (void)loadContentsOfURL:(NSURL *)url configuration:(MLModelConfiguration *)c completionHandler:(id)handler {
	NSDictionary *model = plist([url path]);
	if (c->function) {
		NSMutableDictionary *merged = [NSMutableDictionary dictionaryWithDictionary:model];
		NSDictionary *f = [[model objectForKey:@"functions"] objectForKey:c->function];
		[merged addEntriesFromDictionary:f ? f : [NSDictionary dictionary]];
		model = f ? merged : nil;
	}
	if (!model || hasFault(model, @"load_error")) {
		answer(handler, nil, stubError(0, @"Failed to build the model execution plan."));
		return;
	}
	if (hasFault(model, @"load_hang")) return;
	if (hasFault(model, @"load_nil")) { answer(handler, nil, nil); return; }
	if (hasFault(model, @"load_raise")) [NSException raise:NSInvalidArgumentException format:@"unrecognized option"];
	MLModel *m = [[self new] autorelease];
	m->model = [model retain];
	m->units = c->units;
	__sync_add_and_fetch(&stub_live_models, 1);
	answer(handler, m, nil);
}

+ (NSArray *)availableComputeDevices {
	return [NSArray arrayWithObjects:[[NSClassFromString(@"MLCPUComputeDevice") new] autorelease],
		[[NSClassFromString(@"MLNeuralEngineComputeDevice") new] autorelease], nil];
}

- (id)modelDescription { return hasFault(model, @"nil_description") ? nil : [MLModelDescription of:model]; }

// Whether an array is one that the feature takes, as Core ML itself checks.
static BOOL takes(NSDictionary *feature, MLMultiArray *a) {
	NSArray *shapes = [feature objectForKey:@"shapes"], *ranges = [feature objectForKey:@"ranges"];
	if (shapes) return [shapes containsObject:a->shape];
	if (!ranges) return [[feature objectForKey:@"shape"] isEqual:a->shape];
	for (NSUInteger i = 0; i < [ranges count]; i++) {
		long n = [[a->shape objectAtIndex:i] longLongValue];
		long least = [[[ranges objectAtIndex:i] objectAtIndex:0] longLongValue], most = [[[ranges objectAtIndex:i] objectAtIndex:1] longLongValue];
		if (n < least || (most && n > most)) return NO;
	}
	return YES;
}

static int at(MLMultiArray *a, long row, long column) {
	return ((int *)a->bytes)[row * a->rowStride + column];
}

// An output of the given shape in the model's type and layout, filled by value.
static MLMultiArray *output(NSDictionary *feature, NSArray *shape, double (*value)(void *, long, long, long), void *context) {
	long type = [[feature objectForKey:@"type"] longLongValue], gap = [[feature objectForKey:@"gap"] longLongValue];
	int rank = [shape count];
	long width = type == Float16 ? 2 : type == Float32 || type == Int32 ? 4 : 8;
	long strides[8], next = gap ? gap : 1;
	for (int d = rank - 1; d >= 0; d--) {
		strides[d] = next;
		next = next * [[shape objectAtIndex:d] longLongValue] + (d ? 3 : 0);
	}
	MLMultiArray *a = [[[MLMultiArray alloc] initWithShape:shape strides:numbers(strides, rank) dataType:type size:next * width] autorelease];
	long n[3] = {1, 1, 1}, s[3] = {0, 0, 0};
	for (int d = 0; d < rank; d++) {
		n[3 - rank + d] = [[shape objectAtIndex:d] longLongValue];
		s[3 - rank + d] = strides[d];
	}
	for (long i = 0; i < n[0]; i++) for (long j = 0; j < n[1]; j++) for (long k = 0; k < n[2]; k++) {
		long e = i * s[0] + j * s[1] + k * s[2];
		double v = rank == 3 ? value(context, i, j, k) : value(context, j, -1, k);
		if (type == Float16) ((_Float16 *)a->bytes)[e] = v;
		else if (type == Float32) ((float *)a->bytes)[e] = v;
		else if (type == Float64) ((double *)a->bytes)[e] = v;
	}
	return a;
}

struct inputs { MLMultiArray *ids, *mask, *types; BOOL score; double lie; };

static BOOL real(struct inputs *in, long row, long column) {
	return in->mask ? at(in->mask, row, column) == 1 : at(in->ids, row, column) != 0;
}

// A state, a mean over the tokens that the mask leaves (column -1), or a score.
// A padded token's state is one that no mean may hold.
static double compute(void *context, long row, long column, long j) {
	struct inputs *in = context;
	double sum = 0;
	long n = 0, length = [[in->ids->shape objectAtIndex:1] longLongValue];
	for (long c = 0; c < length; c++) {
		int id = at(in->ids, row, c), type = in->types ? at(in->types, row, c) : 0;
		if (c == column) return real(in, row, c) ? state(id, type, j) + in->lie : 1000;
		if (column < 0 && real(in, row, c)) {
			sum += in->score ? id * (1 + type) * (c % 7 + 1) : state(id, type, j);
			n++;
		}
	}
	return in->score ? ((long)sum % 997) / 64.0 + in->lie : sum / n + in->lie;
}

// Whether a prediction has this fault. So many predictions pass before it does.
- (BOOL)fails:(NSString *)fault {
	return runs > [[model objectForKey:@"fault_after"] longLongValue] && hasFault(model, fault);
}

- (id)answerTo:(MLDictionaryFeatureProvider *)given error:(NSError **)e {
	NSDictionary *features = [model objectForKey:@"inputs"], *outputs = [model objectForKey:@"outputs"];
	struct inputs in = {0};
	for (NSString *name in features) {
		MLMultiArray *a = [[given featureValueForName:name] multiArrayValue];
		NSDictionary *feature = [features objectForKey:name];
		if (!a && ![[feature objectForKey:@"optional"] boolValue]) {
			*e = stubError(1, [NSString stringWithFormat:@"Feature %@ is required but not specified.", name]);
			return nil;
		}
		if (a && !takes(feature, a)) {
			*e = stubError(1, [NSString stringWithFormat:@"MultiArray shape of %@ does not match the shape specified in the model description.", name]);
			return nil;
		}
		if ([name isEqualToString:@"input_ids"]) in.ids = a;
		if ([name isEqualToString:@"attention_mask"]) in.mask = a;
		if ([name isEqualToString:@"token_type_ids"]) in.types = a;
	}
	long length = [[in.ids->shape objectAtIndex:1] longLongValue];
	// Stricter than Core ML: what a model makes of such a row is anybody's guess.
	for (long row = 0; row < [[in.ids->shape objectAtIndex:0] longLongValue]; row++) {
		long n = 0;
		for (long c = 0; c < length; c++) n += real(&in, row, c);
		if (n == 0) {
			*e = stubError(1, @"A row holds nothing but padding.");
			return nil;
		}
	}
	// The report of wrong values at some lengths only (edge-case table).
	if ([self fails:@"wrong_values"] && length == [[model objectForKey:@"fault_length"] longLongValue]) in.lie = 4;
	if ([self fails:@"predict_nan"]) in.lie = NAN;
	NSMutableDictionary *made = [NSMutableDictionary dictionary];
	for (NSString *name in outputs) {
		NSDictionary *feature = [outputs objectForKey:name];
		in.score = [[feature objectForKey:@"score"] boolValue];
		NSMutableArray *shape = [NSMutableArray arrayWithArray:[feature objectForKey:@"shape"]];
		[shape replaceObjectAtIndex:0 withObject:[in.ids->shape objectAtIndex:0]];
		if ([shape count] == 3) [shape replaceObjectAtIndex:1 withObject:[in.ids->shape objectAtIndex:1]];
		// coremltools issue 2730: eight rows in, one row out.
		if (shrink || [self fails:@"fewer_rows"]) [shape replaceObjectAtIndex:0 withObject:[NSNumber numberWithInt:1]];
		if ([self fails:@"missing_output"]) continue;
		MLMultiArray *a = output(feature, shape, compute, &in);
		if ([self fails:@"short_memory"]) a->size = 2;
		if ([self fails:@"hidden_memory"]) a->hidden = YES;
		if ([self fails:@"wrong_type"]) a->type = Int32;
		[made setObject:[MLFeatureValue featureValueWithMultiArray:a] forKey:name];
	}
	return [[[MLDictionaryFeatureProvider alloc] initWithDictionary:made error:NULL] autorelease];
}

- (id)predictionsFromBatch:(MLArrayBatchProvider *)batch error:(NSError **)e {
	runs++;
	if ([self fails:@"predict_error"]) { *e = stubError(0, @"Unable to compute the prediction."); return nil; }
	if ([self fails:@"predict_nil"]) return nil;
	if ([self fails:@"predict_kill"]) die(SIGKILL);
	if ([self fails:@"predict_abort"] || ([self fails:@"gpu_abort"] && (units == 1 || units == 2))) die(SIGABRT);
	if ([self fails:@"predict_hang"]) pause();
	NSMutableArray *made = [NSMutableArray array];
	long n = [batch count];
	if ([self fails:@"fewer_sets"]) n--;
	for (long i = 0; i < n; i++) {
		shrink = i > 0 && [self fails:@"shapes_differ"];
		id one = [self answerTo:[batch featuresAtIndex:i] error:e];
		if (!one) return nil;
		[made addObject:one];
	}
	return [[[MLArrayBatchProvider alloc] initWithFeatureProviderArray:made] autorelease];
}

- (void)dealloc { __sync_sub_and_fetch(&stub_live_models, 1); [model release]; [super dealloc]; }
@end
