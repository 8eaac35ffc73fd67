/**
 * Every guard there is a mutant for.
 */
import * as Files from "./files.ts"
import type { Mutant } from "./Mutant.ts"
import * as Provider from "./provider.ts"
import * as Tools from "./tools.ts"

export const mutants: ReadonlyArray<Mutant> = [...Provider.mutants, ...Tools.mutants, ...Files.mutants]
