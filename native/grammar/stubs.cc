#include "grammar/front-ends.h"
#include "grammar/schema-error.h"
namespace onpolicy::grammar {
Symbol LarkSymbol(FrontEnd&, std::string_view, int) { throw SchemaError("UNSUPPORTED", "", "Lark"); }
}
