/**
 * A guard against a fault, taken out: the test of that fault has to fail then, or it proves nothing.
 */
export interface Mutant {
  /** The row of the fault matrix, such as `F009`, or else words of a title. The tests whose titles hold it are run. */
  readonly fault: string
  /** What no longer holds, in words. */
  readonly without: string
  /** The source file of the guard, from the root of the repo. */
  readonly file: string
  /** A piece of its text that is there once. */
  readonly from: string
  /** What stands in its place. Must still compile where types do not matter. */
  readonly to: string
  /** The test file that must notice. */
  readonly test: string
}
