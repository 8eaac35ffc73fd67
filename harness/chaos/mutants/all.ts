/**
 * Every guard there is a mutant for.
 */
import * as Asking from "./asking.ts"
import * as Files from "./files.ts"
import * as Keeping from "./keeping.ts"
import * as Mcp from "./mcp.ts"
import type { Mutant } from "./Mutant.ts"
import * as Provider from "./provider.ts"
import * as Proxy from "./proxy.ts"
import * as Running from "./running.ts"
import * as Server from "./server.ts"
import * as Tools from "./tools.ts"

export const mutants: ReadonlyArray<Mutant> = [
  ...Provider.mutants,
  ...Tools.mutants,
  ...Files.mutants,
  ...Asking.mutants,
  ...Proxy.mutants,
  ...Running.mutants,
  ...Keeping.mutants,
  ...Server.mutants,
  ...Mcp.mutants
]
