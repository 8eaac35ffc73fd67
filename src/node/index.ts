/**
 * HTTP for Node over undici.
 *
 * This entry point requires `@effect/platform-node`.
 *
 * @since 0.1.0
 */
export * as NodeHttp from "./NodeHttp.ts"
export * as NodeProxy from "./NodeProxy.ts"
