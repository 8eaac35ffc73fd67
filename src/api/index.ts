/**
 * The HTTP API of the server, for the server and for clients: routes, bodies and errors.
 *
 * @since 0.2.0
 */
export * as Api from "./Api.ts"
export * as Payload from "./Payload.ts"
export * as Problem from "./Problem.ts"
