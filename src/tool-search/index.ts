/**
 * Finds tools by words, so that requests need not have the schemas of all of them.
 *
 * @since 0.2.0
 */
export * as ToolSearch from "./ToolSearch.ts"
