/** HTML that is made of checked pieces: what is put into a template is escaped, unless it came out of one. */
import { escapeHtml } from '../../../mail/safe-text.ts'

/** Markup that was made here. Only `html` makes it. */
export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

type Piece = string | number | Html | null | readonly Piece[]

/** A template whose values become harmless text; nothing for null, lists one after the other. */
export function html(literals: TemplateStringsArray, ...pieces: readonly Piece[]): Html {
  return new Html(literals.reduce((made, literal, at) => made + markupOf(pieces[at - 1] ?? null) + literal))
}

function markupOf(piece: Piece): string {
  if (piece === null) return ''
  if (piece instanceof Html) return piece.text
  if (typeof piece === 'object') return piece.map(markupOf).join('')
  return escapeHtml(visibleText(String(piece)))
}

/**
 * Control characters, and those that turn the direction of the text around them: a name must not change how its neighbours read. The
 * joiners of Indian scripts and of emoji stay.
 */
const notVisible = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]+/gu

function visibleText(text: string): string {
  return text.replace(notVisible, ' ')
}
