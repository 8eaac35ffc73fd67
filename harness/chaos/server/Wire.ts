/**
 * What the server and its clients agree on.
 */

/** The token of the server. */
export const token = "t0ken"

/** Milliseconds between two pieces. */
export const interval = 20

/** The text of a piece: its number, and letters that fill it. */
export const pieceOf = (at: number, fill: string): string => `${at} ${fill} `

export interface Answer {
  /** The number of pieces. */
  readonly pieces: number
  /** The letters of each piece. */
  readonly fill: number
}
