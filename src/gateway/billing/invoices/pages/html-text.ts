/** Builds HTML from templates. A value in a template is escaped, unless the value is an Html object from another template. */
import { escapeHtml } from '../../../mail/safe-text.ts'

/** Markup from a template. Only the function `html` makes it. */
export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

type Piece = string | number | Html | null | readonly Piece[]

/** Makes Html from a template. It escapes values, writes nothing for null, and joins lists. */
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
 * Control characters, and characters that change the direction of the surrounding text. A name with such a character could change how the text around
 * it reads. The joiners of Indian scripts and of emoji are allowed.
 */
const notVisible = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]+/gu

function visibleText(text: string): string {
  return text.replace(notVisible, ' ')
}
