/**
 * A server of agents over HTTP: sessions, runs that belong to the server, and their events.
 *
 * @since 0.2.0
 */
export * as Agents from "../runs/Agents.ts"
export * as EventStream from "./EventStream.ts"
export * as JsonlRunLogStore from "../runs/JsonlRunLogStore.ts"
export * as LiveRuns from "../runs/LiveRuns.ts"
export * as ProxyRoutes from "./ProxyRoutes.ts"
export * as Routes from "./Routes.ts"
export * as RunLogStore from "../runs/RunLogStore.ts"
export * as Runs from "../runs/Runs.ts"
export * as Server from "./Server.ts"
export * as SqlRunLogStore from "../runs/SqlRunLogStore.ts"
export * as UiRoutes from "./UiRoutes.ts"
