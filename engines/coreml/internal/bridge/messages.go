package bridge

import "github.com/synapse-module/workers/engines/coreml/internal/objc"

type id = objc.ID

// messages are all messages that the bridge sends. The tag of each says + for a
// class's and - for an instance's, the class, the selector, the type encoding
// without frame offsets, and the macOS that brought it.
//
// The encodings are what Apple's compiler emits for the types in the frameworks'
// headers; they were not read from a Mac. So a message that is missing is an
// error, one that is encoded otherwise a warning.
type messages struct {
	CompileModel       method2[id, id, void]     `objc:"+ MLModel compileModelAtURL:completionHandler: v@:@@? 13.0"`
	LoadModel          method3[id, id, id, void] `objc:"+ MLModel loadContentsOfURL:configuration:completionHandler: v@:@@@? 11.0"`
	PredictBatch       method2[id, *id, id]      `objc:"- MLModel predictionsFromBatch:error: @@:@^@ 10.14"`
	ModelDescription   method0[id]               `objc:"- MLModel modelDescription @@: 10.13"`
	AvailableDevices   method0[id]               `objc:"+ MLModel availableComputeDevices @@: 14.0"`
	InputDescriptions  method0[id]               `objc:"- MLModelDescription inputDescriptionsByName @@: 10.13"`
	OutputDescriptions method0[id]               `objc:"- MLModelDescription outputDescriptionsByName @@: 10.13"`
	Metadata           method0[id]               `objc:"- MLModelDescription metadata @@: 10.13"`

	IsOptional           method0[bool]  `objc:"- MLFeatureDescription isOptional B@: 10.13"`
	MultiArrayConstraint method0[id]    `objc:"- MLFeatureDescription multiArrayConstraint @@: 10.13"`
	ConstraintShape      method0[id]    `objc:"- MLMultiArrayConstraint shape @@: 10.13"`
	ConstraintDataType   method0[int64] `objc:"- MLMultiArrayConstraint dataType q@: 10.13"`
	ShapeConstraint      method0[id]    `objc:"- MLMultiArrayConstraint shapeConstraint @@: 10.14"`
	ShapeConstraintType  method0[int64] `objc:"- MLMultiArrayShapeConstraint type q@: 10.14"`
	SizeRanges           method0[id]    `objc:"- MLMultiArrayShapeConstraint sizeRangeForDimension @@: 10.14"`
	EnumeratedShapes     method0[id]    `objc:"- MLMultiArrayShapeConstraint enumeratedShapes @@: 10.14"`

	SetComputeUnits method1[int64, void] `objc:"- MLModelConfiguration setComputeUnits: v@:q 10.14"`
	SetFunctionName method1[id, void]    `objc:"- MLModelConfiguration setFunctionName: v@:@ 15.0"`

	InitArray       method3[id, int64, *id, id] `objc:"- MLMultiArray initWithShape:dataType:error: @@:@q^@ 10.13"`
	ArrayDataType   method0[int64]              `objc:"- MLMultiArray dataType q@: 10.13"`
	ArrayShape      method0[id]                 `objc:"- MLMultiArray shape @@: 10.13"`
	ArrayStrides    method0[id]                 `objc:"- MLMultiArray strides @@: 10.13"`
	GetBytes        method1[id, void]           `objc:"- MLMultiArray getBytesWithHandler: v@:@? 12.3"`
	GetMutableBytes method1[id, void]           `objc:"- MLMultiArray getMutableBytesWithHandler: v@:@? 12.3"`

	InitFeatures    method2[id, *id, id] `objc:"- MLDictionaryFeatureProvider initWithDictionary:error: @@:@^@ 10.13"`
	FeatureValue    method1[id, id]      `objc:"- MLDictionaryFeatureProvider featureValueForName: @@:@ 10.13"`
	InitBatch       method1[id, id]      `objc:"- MLArrayBatchProvider initWithFeatureProviderArray: @@:@ 10.14"`
	BatchCount      method0[int64]       `objc:"- MLArrayBatchProvider count q@: 10.14"`
	BatchFeatures   method1[int64, id]   `objc:"- MLArrayBatchProvider featuresAtIndex: @@:q 10.14"`
	ValueOfArray    method1[id, id]      `objc:"+ MLFeatureValue featureValueWithMultiArray: @@:@ 10.13"`
	MultiArrayValue method0[id]          `objc:"- MLFeatureValue multiArrayValue @@: 10.13"`

	LoadPlan         method3[id, id, id, void] `objc:"+ MLComputePlan loadContentsOfURL:configuration:completionHandler: v@:@@@? 14.4"`
	ModelStructure   method0[id]               `objc:"- MLComputePlan modelStructure @@: 14.4"`
	OperationUsage   method1[id, id]           `objc:"- MLComputePlan computeDeviceUsageForMLProgramOperation: @@:@ 14.4"`
	LayerUsage       method1[id, id]           `objc:"- MLComputePlan computeDeviceUsageForNeuralNetworkLayer: @@:@ 14.4"`
	OperationCost    method1[id, id]           `objc:"- MLComputePlan estimatedCostOfMLProgramOperation: @@:@ 14.4"`
	CostWeight       method0[float64]          `objc:"- MLComputePlanCost weight d@: 14.4"`
	PreferredDevice  method0[id]               `objc:"- MLComputePlanDeviceUsage preferredComputeDevice @@: 14.4"`
	SupportedDevices method0[id]               `objc:"- MLComputePlanDeviceUsage supportedComputeDevices @@: 14.4"`
	Program          method0[id]               `objc:"- MLModelStructure program @@: 14.4"`
	NeuralNetwork    method0[id]               `objc:"- MLModelStructure neuralNetwork @@: 14.4"`
	Pipeline         method0[id]               `objc:"- MLModelStructure pipeline @@: 14.4"`
	SubModels        method0[id]               `objc:"- MLModelStructurePipeline subModels @@: 14.4"`
	Functions        method0[id]               `objc:"- MLModelStructureProgram functions @@: 14.4"`
	FunctionBlock    method0[id]               `objc:"- MLModelStructureProgramFunction block @@: 14.4"`
	BlockOperations  method0[id]               `objc:"- MLModelStructureProgramBlock operations @@: 14.4"`
	OperatorName     method0[id]               `objc:"- MLModelStructureProgramOperation operatorName @@: 14.4"`
	OperationBlocks  method0[id]               `objc:"- MLModelStructureProgramOperation blocks @@: 14.4"`
	Layers           method0[id]               `objc:"- MLModelStructureNeuralNetwork layers @@: 14.4"`
	LayerType        method0[id]               `objc:"- MLModelStructureNeuralNetworkLayer type @@: 14.4"`
	CoreCount        method0[int64]            `objc:"- MLNeuralEngineComputeDevice totalCoreCount q@: 14.0"`

	FileURL          method1[id, id]       `objc:"+ NSURL fileURLWithPath: @@:@ 10.0"`
	URLPath          method0[id]           `objc:"- NSURL path @@: 10.0"`
	StringOf         method1[string, id]   `objc:"+ NSString stringWithUTF8String: @@:r* 10.0"`
	UTF8String       method0[string]       `objc:"- NSString UTF8String r*@: 10.0"`
	NumberOf         method1[int64, id]    `objc:"+ NSNumber numberWithLongLong: @@:q 10.0"`
	LongLongValue    method0[int64]        `objc:"- NSNumber longLongValue q@: 10.0"`
	RangeValue       method0[objc.Range]   `objc:"- NSValue rangeValue {_NSRange=QQ}@: 10.0"`
	NewArray         method0[id]           `objc:"+ NSMutableArray array @@: 10.0"`
	AddObject        method1[id, void]     `objc:"- NSMutableArray addObject: v@:@ 10.0"`
	Count            method0[uint64]       `objc:"- NSArray count Q@: 10.0"`
	ObjectAtIndex    method1[uint64, id]   `objc:"- NSArray objectAtIndex: @@:Q 10.0"`
	NewDictionary    method0[id]           `objc:"+ NSMutableDictionary dictionary @@: 10.0"`
	SetObject        method2[id, id, void] `objc:"- NSMutableDictionary setObject:forKey: v@:@@ 10.0"`
	ObjectForKey     method1[id, id]       `objc:"- NSDictionary objectForKey: @@:@ 10.0"`
	AllKeys          method0[id]           `objc:"- NSDictionary allKeys @@: 10.0"`
	ErrorDescription method0[id]           `objc:"- NSError localizedDescription @@: 10.2"`
	ErrorDomain      method0[id]           `objc:"- NSError domain @@: 10.2"`
	ErrorCode        method0[int64]        `objc:"- NSError code q@: 10.2"`

	AllocConfiguration method0[id] `objc:"+ MLModelConfiguration alloc @@: 10.14"`
	AllocArray         method0[id] `objc:"+ MLMultiArray alloc @@: 10.13"`
	AllocFeatures      method0[id] `objc:"+ MLDictionaryFeatureProvider alloc @@: 10.13"`
	AllocBatch         method0[id] `objc:"+ MLArrayBatchProvider alloc @@: 10.14"`

	Init        method0[id]       `objc:"- NSObject init @@: 10.0"`
	Retain      method0[id]       `objc:"- NSObject retain @@: 10.0"`
	Release     method0[void]     `objc:"- NSObject release Vv@: 10.0"`
	Autorelease method0[id]       `objc:"- NSObject autorelease @@: 10.0"`
	IsKindOf    method1[id, bool] `objc:"- NSObject isKindOfClass: B@:# 10.0"`
}
