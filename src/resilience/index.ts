/**
 * Decorators of `Provider` layers for model calls that fail.
 *
 * @since 0.1.0
 */
export * as Retry from "./Retry.ts"
export * as CircuitBreaker from "./CircuitBreaker.ts"
export * as Fallback from "./Fallback.ts"
export * as RateLimit from "./RateLimit.ts"
