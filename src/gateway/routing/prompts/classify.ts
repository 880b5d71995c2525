/** Classifies a prompt by patterns, without a model. The functions are pure. The work is bounded for prompts of any length. */
import type { Capability } from '../../catalog/rankings.ts'
import { codePatterns, codeWords, hardWords, mathPatterns, mathWords, reasoningPatterns, reasoningWords } from './cues.ts'
import { type Language, romanisedLanguage, scriptLanguage } from './languages.ts'

/** How capable a model the prompt needs: 1 any model, 2 a good one, 3 one of the best. */
export type Complexity = 1 | 2 | 3

export interface Classified {
  readonly capability: Capability
  readonly complexity: Complexity
  /** Name of the decisive cue, as one word for a header. */
  readonly cue: string
  /** Tag of the prompt's language. Null when the language is not recognised. */
  readonly language: Language | null
}

/** A prompt of this many tokens or more has the capability long-context, whatever its text. Our choice. */
export const longContextTokens = 32_000
/** Only this many characters are read at each end of a long text. Our choice. */
const readChars = 4_096
/** Number of points that a capability needs. */
const enough = 2

interface Found {
  readonly points: number
  readonly cue: string
}

/**
 * Classifies a prompt. `promptTokens` is the size of the whole request, and `text` is the user's last text. The capabilities are checked in the order
 * long-context, code, math, multilingual, reasoning. The first one with enough points is the result. Without one, the result is general. The same
 * input always gives the same result.
 */
export function classify(text: string, promptTokens: number): Classified {
  const read = text.length > 2 * readChars ? `${text.slice(0, readChars)}\n${text.slice(-readChars)}` : text
  const lower = read.toLowerCase()
  const words = new Set(lower.match(/[\p{L}\p{M}][\p{L}\p{M}\p{N}_+#.'’-]*[\p{L}\p{M}\p{N}+#]|[\p{L}]/gu) ?? [])
  const code = found(read, words, codePatterns, codeWords)
  const math = found(read, words, mathPatterns, mathWords)
  const reasoning = found(lower, words, reasoningPatterns, reasoningWords)
  const language = scriptLanguage(read) ?? romanisedLanguage(lower)
  const complexity = complexityOf(read, words, promptTokens, [code, math, reasoning])
  const is = (capability: Capability, cue: string): Classified => ({ capability, complexity, cue, language })
  if (promptTokens >= longContextTokens) return is('long-context', 'prompt_size')
  if (code.points >= enough) return is('code', code.cue)
  if (math.points >= enough) return is('math', math.cue)
  if (language !== null) return is('multilingual', `language_${language}`)
  if (reasoning.points >= enough) return is('reasoning', reasoning.cue)
  return is('general', 'no_cue')
}

/** Adds the points of the matching cues. Each cue counts once. Returns the sum, and the name of the pattern with the most points. */
function found(text: string, words: ReadonlySet<string>, patterns: readonly (readonly [string, number, RegExp])[], list: ReadonlyMap<string, number>): Found {
  let points = 0
  let cue = 'words'
  let heaviest = 0
  for (const [name, weight, pattern] of patterns) {
    if (!pattern.test(text)) continue
    points += weight
    if (weight > heaviest) {
      cue = name
      heaviest = weight
    }
  }
  for (const word of words) points += list.get(word.replace(/[.'’-]+$/, '')) ?? 0
  return { points, cue }
}

/** Returns the complexity. It adds points for size, for a subject that needs care, and for words that ask for depth. */
function complexityOf(text: string, words: ReadonlySet<string>, promptTokens: number, subjects: readonly Found[]): Complexity {
  let points = 0
  if (text.length > 400) points++
  if (text.length > 2_000 || promptTokens > 4_000) points++
  if (subjects.some(subject => subject.points >= enough)) points++
  if (subjects.filter(subject => subject.points >= enough).length > 1) points++
  for (const word of words) if (hardWords.has(word)) points++
  return points === 0 ? 1 : points < 3 ? 2 : 3
}
