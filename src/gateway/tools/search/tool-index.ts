import type { CallableTool } from '../registry/callable-tool.ts'
import { stemsIn, wordsLike, wordsOfQuestion } from './search-words.ts'

/** What a word counts by the place where it is. */
const weights = { name: 3, server: 2.5, title: 2, description: 1, parameter: 0.5 } as const
/** Bounds of what is read of one definition. */
const descriptionMaxChars = 2000
const parametersMax = 64
/** Names of parameters are short. Longer ones are cut. */
const parameterMaxChars = 64
/** Different words that are kept of one tool, and of all tools of an organisation. */
const toolWordsMax = 300
const wordsMax = 200_000
/** Different words of a question that count. */
const questionWordsMax = 24
/** What a word of the same meaning counts, beside the word itself. */
const alikeWeight = 0.45
/** The constants of BM25: how soon a repeated word counts no more, and how much a long definition loses. */
const saturation = 1.2
const lengthWeight = 0.5
/** Tools that are read in one turn, which takes about 3 ms. */
const toolsATurn = 20

/** The places of one word: tools with the weighted number of its occurrences. */
interface Places {
  readonly tools: number[]
  readonly counts: number[]
}

/**
 * The words of the tools of one organisation. A search ranks by BM25 over the parts of the name, the title, the description and the names of parameters, each
 * with a weight. Equal questions over equal tools have equal answers. Decision 0837 gives the reasons.
 */
export class ToolIndex {
  readonly #tools: readonly CallableTool[]
  readonly #places = new Map<string, Places>()
  readonly #lengths: number[] = []
  #meanLength = 1

  private constructor(tools: readonly CallableTool[]) {
    this.#tools = tools
  }

  /** Reads the definitions of tools, in pieces that `turn` runs. */
  static async of(tools: readonly CallableTool[], turn: (work: () => void) => Promise<void>): Promise<ToolIndex> {
    const index = new ToolIndex(tools)
    for (let from = 0; from < tools.length; from += toolsATurn)
      await turn(() => {
        for (const [at, tool] of tools.slice(from, from + toolsATurn).entries()) index.#add(from + at, tool)
      })
    index.#meanLength = Math.max(1, index.#lengths.reduce((sum, length) => sum + length, 0) / Math.max(1, tools.length))
    return index
  }

  /** Returns at most `limit` tools that `may` accepts, best first, and by name where they are equally good. */
  find(question: string, limit: number, may: (tool: CallableTool) => boolean): CallableTool[] {
    const scores = new Map<number, number>()
    for (const word of new Set(stemsIn(question).slice(0, questionWordsMax)))
      for (const [at, score] of this.#bestOf([word], wordsLike(word))) scores.set(at, (scores.get(at) ?? 0) + score)
    // A tool that reads answers a question. This alone finds nothing.
    const reading = this.#bestOf([], wordsOfQuestion(question))
    for (const [at, score] of scores) scores.set(at, score + (reading.get(at) ?? 0))
    return [...scores]
      .map(([at, score]) => ({ tool: this.#tools[at] as CallableTool, score }))
      .sort((a, b) => b.score - a.score || (a.tool.publicName < b.tool.publicName ? -1 : 1))
      .reduce<CallableTool[]>((found, { tool }) => {
        if (found.length < limit && may(tool)) found.push(tool)
        return found
      }, [])
  }

  /** Returns what words count together for each tool: the largest of their values. */
  #bestOf(words: Iterable<string>, others: Iterable<string>): Map<number, number> {
    const best = new Map<number, number>()
    for (const word of words) this.#score(word, 1, best)
    for (const word of others) this.#score(word, alikeWeight, best)
    return best
  }

  /** Writes what a word counts for each tool that has it. A larger value that is there stays. */
  #score(word: string, weight: number, best: Map<number, number>): void {
    const places = this.#places.get(word)
    if (places === undefined) return
    const rarity = Math.log(1 + (this.#tools.length - places.tools.length + 0.5) / (places.tools.length + 0.5))
    for (const [i, at] of places.tools.entries()) {
      const count = places.counts[i] ?? 0
      const length = (this.#lengths[at] ?? 0) / this.#meanLength
      const score = (weight * rarity * count * (saturation + 1)) / (count + saturation * (1 - lengthWeight + lengthWeight * length))
      if (score > (best.get(at) ?? 0)) best.set(at, score)
    }
  }

  #add(at: number, { slug, upstreamName, definition }: CallableTool): void {
    const counts = new Map<string, number>()
    let length = 0
    const note = (text: unknown, weight: number, maxChars = descriptionMaxChars): void => {
      if (typeof text !== 'string') return
      for (const stem of stemsIn(text.slice(0, maxChars))) {
        if (counts.size >= toolWordsMax && !counts.has(stem)) continue
        counts.set(stem, (counts.get(stem) ?? 0) + weight)
        length += weight
      }
    }
    note(upstreamName, weights.name)
    note(slug, weights.server)
    note(definition['title'], weights.title)
    note(definition['description'], weights.description)
    for (const name of parametersOf(definition).slice(0, parametersMax)) note(name, weights.parameter, parameterMaxChars)
    this.#lengths[at] = length
    for (const [word, count] of counts) {
      const places = this.#places.get(word)
      if (places === undefined) {
        if (this.#places.size < wordsMax) this.#places.set(word, { tools: [at], counts: [count] })
      } else {
        places.tools.push(at)
        places.counts.push(count)
      }
    }
  }
}

/** Returns the names of the arguments that a definition declares. */
export function parametersOf(definition: Readonly<Record<string, unknown>>): string[] {
  return Object.keys(objectOf(objectOf(definition['inputSchema'])['properties']))
}

/** Returns the names of the arguments that a definition requires. */
export function requiredOf(definition: Readonly<Record<string, unknown>>): string[] {
  const { required } = objectOf(definition['inputSchema'])
  return Array.isArray(required) ? required.filter(name => typeof name === 'string') : []
}

const objectOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Readonly<Record<string, unknown>>) : {}
