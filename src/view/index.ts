/**
 * Runs as a person sees them: the rows that a terminal, a page and an export show.
 *
 * @since 0.2.0
 */
export * as RunView from "./RunView.ts"
