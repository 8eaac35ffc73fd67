/**
 * Model calls through a server that has the keys of vendors: providers that ask such a server, and handlers for the server.
 *
 * @since 0.2.0
 */
export * as ModelStream from "./ModelStream.ts"
export * as PiProxy from "./PiProxy.ts"
export * as PiStream from "./PiStream.ts"
export * as ProxyProvider from "./ProxyProvider.ts"
