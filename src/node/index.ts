/**
 * What is of Node alone. It needs `@effect/platform-node`.
 */
export * as NodeHttp from "./NodeHttp.ts"
export * as NodeProxy from "./NodeProxy.ts"
