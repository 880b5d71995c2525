/** Classifies a prompt by patterns, without a model. Pure. The work is bounded for prompts of any length. */
import type { Capability } from '../../catalog/rankings.ts'
import { codePatterns, codeWords, hardWords, mathPatterns, mathWords, reasoningPatterns, reasoningWords } from './cues.ts'
import { type Language, romanisedLanguage, scriptLanguage } from './languages.ts'

/** How capable a model the prompt needs: 1 any model, 2 a good one, 3 one of the best. */
export type Complexity = 1 | 2 | 3

export interface Classified {
  readonly capability: Capability
  readonly complexity: Complexity
  /** Name of the cue that decided, as one word for a header. */
  readonly cue: string
  /** Tag of the prompt's language. Null when the language is not recognised. */
  readonly language: Language | null
}

/** From this number of prompt tokens on, the size decides the capability. Our choice. */
export const longContextTokens = 32_000
/** Of a long text, only this number of characters is read at the beginning and at the end. Our choice. */
const readChars = 4_096
/** Points that are needed for a capability. */
const enough = 2

interface Found {
  readonly points: number
  readonly cue: string
}

/**
 * Classifies a prompt. `promptTokens` is the size of the whole request. `text` is the user's last text. The order is long-context, code,
 * math, multilingual, reasoning: the first with enough points is the result, otherwise general. The same input gives the same result.
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

/** Adds the points of the matching cues, each once. Returns them with the name of the pattern that has the most points. */
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

/** Adds points for size, for a subject that needs care, and for words that ask for depth. Returns the complexity. */
function complexityOf(text: string, words: ReadonlySet<string>, promptTokens: number, subjects: readonly Found[]): Complexity {
  let points = 0
  if (text.length > 400) points++
  if (text.length > 2_000 || promptTokens > 4_000) points++
  if (subjects.some(subject => subject.points >= enough)) points++
  if (subjects.filter(subject => subject.points >= enough).length > 1) points++
  for (const word of words) if (hardWords.has(word)) points++
  return points === 0 ? 1 : points < 3 ? 2 : 3
}
