/**
 * What stands between the loop and a provider that fails: decorators of `Provider` layers.
 */
export * as Retry from "../Retry.ts"
export * as Fallback from "./Fallback.ts"
