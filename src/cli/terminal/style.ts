import { styleText } from 'node:util'

/** How a text is shown on a terminal with colours. */
export type Look = 'bold' | 'dim' | 'green' | 'yellow' | 'red'

/** Returns whether stdout is a terminal that shows colours. Node reads NO_COLOR, FORCE_COLOR and TERM. */
export function hasColours(): boolean {
  return process.stdout.isTTY === true && process.stdout.hasColors()
}

/** Returns the text in this look on a terminal with colours, and unchanged everywhere else. The text must contain no control characters. */
export function styled(look: Look, text: string): string {
  return hasColours() ? styleText(look, text) : text
}
