/**
 * Runs that survive the process, on Node.
 *
 * This entry point requires `@effect/platform-node`.
 *
 * @since 0.2.0
 */
export * as NodeCluster from "./NodeCluster.ts"
