// Every number that bounds the engine's work and memory, with its unit. budget.h says what happens when one is reached.
#pragma once
#include <cstddef>
#include <cstdint>

namespace onpolicy::grammar::limits {

// Work of one phase. A million units take about 10 ms.
constexpr uint64_t kCompileWork = 100'000'000;   // emptiness searches of one compilation, and all work before them
constexpr uint64_t kLookEvery = 250'000;         // between two looks whether a compilation was aborted
constexpr uint64_t kShapeWork = 10'000'000;      // combinations of a schema, in one compilation
constexpr uint64_t kFormulaShapeWork = 2'000;    // the same for each of its formulas, beyond that
constexpr uint64_t kMaskWork = 900'000;          // tokens of several bytes in one mask
constexpr uint64_t kMaskByteWork = 275'000;      // tokens of one byte in one mask, beyond kMaskWork
constexpr unsigned kMaskRounds = 40;              // times that an empty mask goes on with kMaskByteWork
constexpr uint64_t kTerminalByteWork = 2'000'000;  // the same inside of a terminal
constexpr uint64_t kWarmWork = 300'000;          // masks that are computed before they are asked for
constexpr uint64_t kForcedWork = 200'000;        // one look for forced text
constexpr uint64_t kSearchWork = 300'000;        // emptiness searches of one step
constexpr uint64_t kLeastSearchWork = 5'000;     // one search of a step that has spent kSearchWork
constexpr uint64_t kStuckWork = 600'000;         // searches for a way on where none of the shorter ones found one
constexpr uint64_t kStuckSearchWork = 60'000;    // one of them
constexpr uint64_t kCountWork = 100'000;         // counting the texts of one language in a step
constexpr uint64_t kLookWork = 20'000;           // one look ahead before a trie is walked
constexpr uint64_t kDerivativeWork = 40'000;     // simplifying the alternations of one derivative
constexpr uint64_t kLateDerivativeWork = 4'000;   // the same once the step is spent: a state has up to 256 derivatives
constexpr uint64_t kAlternationWork = 10'000;    // simplifying one alternation

// Text of a specification: beyond these it is refused.
constexpr int kRegexDepth = 150;                 // nested groups of a regular expression
constexpr size_t kAnchorLists = 400;             // alternatives that anchors multiply
constexpr uint32_t kLowerCount = 1'000'000;      // lower count of a repetition
constexpr uint32_t kUpperCount = 100'000'000;    // upper count of a repetition
constexpr int kRuleDepth = 600;                  // nested rules that are folded into one terminal
constexpr size_t kFoldedNodes = 300'000;         // nodes of the pool, beyond which no rule is folded

// Expressions.
constexpr size_t kNearStates = 300;              // states of a breadth-first search
constexpr size_t kShortSearch = 2'000;           // states of a depth-first search before a language is relaxed
constexpr size_t kLongSearch = 20'000;           // states of a depth-first search after it, or in a step
constexpr size_t kCompileStates = 100'000;       // states of all searches of a compilation
constexpr uint32_t kSmallCount = 8;              // counts that stay in a relaxed language
constexpr size_t kCountedLength = 4096;          // bytes of the longest text that is counted
constexpr size_t kCountedStates = 5'000;         // states that texts of one length lead to
constexpr size_t kAlternatives = 48;             // alternatives of a derivative
constexpr size_t kAlternationPairs = 4096;       // pairs of an alternation that are compared
constexpr int kClampDepth = 100;                 // nested expressions whose counts are clamped
constexpr unsigned kSubsetDepth = 24;            // nested expressions of one comparison
constexpr unsigned kSubsetSteps = 100;           // steps of one comparison

// Stacks.
constexpr size_t kClosureSteps = 200'000;        // steps of one closure
constexpr size_t kCopiedBranches = 12;           // branches of a stack that a tail call copies
constexpr unsigned kClosureMisses = 100;         // comparisons of one closure that find no subsumption
constexpr size_t kTidyMisses = 1'000;            // comparisons of one list of branches that find none
constexpr size_t kTidyBranches = 100;            // branches that one more is compared with
constexpr size_t kStacksBelow = 100;             // stacks that are listed below one
constexpr size_t kBelowSteps = 2'000;            // branches that are looked at for them
constexpr uint32_t kSubsumptionSteps = 12'000;   // steps of all comparisons of one closure
constexpr uint32_t kLeastSubsumptionSteps = 80;  // steps of one comparison beyond those
constexpr uint32_t kSubsumptionDepth = 4'000;    // nested pairs of one comparison
constexpr size_t kSubsumptionAnswers = 1u << 17;  // answers in one generation of the memo

// Masks.
constexpr size_t kMaskWords = 8u << 20;          // 32-bit words of the masks that a constraint caches
constexpr size_t kWarmMasks = 64;                // masks that are computed before they are asked for
constexpr size_t kTerminalMaskWords = 8u << 20;  // words of the terminal masks that a vocabulary caches
constexpr size_t kExits = 16;                    // accepting states of a terminal mask
constexpr size_t kExitPlaces = 4'000;            // trie nodes of one accepting state
constexpr size_t kReachStates = 300;             // states of a look ahead
constexpr size_t kReachLevelStates = 60;         // states of a look ahead at one distance
constexpr size_t kReachLength = 31;              // code points of a look ahead
constexpr size_t kForcedBytes = 256;             // bytes of forced text

// JSON Schema: beyond these a schema is refused, unless something else is said.
constexpr int kSchemaDepth = 400;                // nested values
constexpr size_t kShapes = 600;                  // shapes of one formula
constexpr size_t kShapeSteps = 400'000;          // steps to the shapes of one formula
constexpr size_t kOneOfSteps = 20'000;           // steps of one oneOf that may be read as anyOf
constexpr size_t kExploredFormulas = 3'000;      // formulas whose shapes are made before the first document
constexpr size_t kEvaluatedBranches = 5;         // branches whose combinations are told apart by what they evaluate; else none are
constexpr int kReferenceChain = 20;              // references to references that a negation follows
constexpr uint64_t kRemainders = 10'000;         // remainders of one multipleOf
constexpr int kCountDepth = 8;                   // nested values that are counted; deeper ones count as many
constexpr uint64_t kCountedValues = 1'000;       // values that are counted; more count as many
constexpr uint64_t kCountedKeys = 1'000;         // keys that are counted; more count as many
constexpr size_t kDemands = 63;                  // demands on one object
constexpr int kUndecidedDemands = 6;             // demands on one object that depend on the value of one member
constexpr int kOpenDemands = 10;                 // demands that are checked together; more are checked one by one
constexpr size_t kItemDemands = 6;               // demands of one item that are told apart
constexpr size_t kKeyClasses = 200;              // classes of keys of one object
constexpr size_t kSearchedClasses = 300;         // classes of keys in a search for a member
constexpr size_t kSeenValues = 1'000;             // unique items, or keys of patterns, behind which an array or object ends once it may
constexpr size_t kExcludedCompounds = 60;        // arrays and objects that are excluded before they can repeat

// Nested parts of other texts.
constexpr int kJsonDepth = 500;
constexpr int kGrammarDepth = 150;
constexpr int kTagDepth = 100;

}  // namespace onpolicy::grammar::limits
