/** What every client is asked to do, and what it says of the answer, in one shape for all packages. */

export interface Ask {
  readonly model: string
  readonly stream: boolean
  readonly image: boolean
  readonly tools: boolean
  readonly schema: boolean
  readonly thinking: boolean
}

export interface Told {
  readonly text: string
  readonly calls: readonly { readonly name: string; readonly input: unknown }[]
  /** In the package's own words. */
  readonly finish: string
  readonly reasoning: string
  /** The answer as the package has read it by the schema. */
  readonly object: unknown
}

export interface SdkClient {
  readonly name: string
  readonly api: 'chat' | 'responses' | 'messages'
  ask(ask: Ask): Promise<Told>
  /** The status of the HTTP reply that an error of this package came from; undefined for errors that came from none. */
  statusOf(error: unknown): unknown
  /** Scenarios that the package or its API has no words for, with the reason. */
  readonly cannot: Readonly<Record<string, string>>
  /** What it says at the end of an answer: plain, with tools, cut at the ceiling, refused. */
  readonly finishes: { readonly stop: string; readonly tools: string; readonly length: string; readonly refused: string }
}

export const question = 'What is the weather in Pune?'
export const pixelBase64 = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
export const pixelUrl = `data:image/png;base64,${pixelBase64}`

const cityProperties = { city: { type: 'string' as const } }
export const citySchema = { type: 'object' as const, properties: cityProperties, required: ['city'], additionalProperties: false }
export const weatherTool = { name: 'get_weather', description: 'Weather of a city', parameters: citySchema }

/** What the answer's schema is, and an answer of it. */
export const answer = { city: 'Pune' }
export const answerText = JSON.stringify(answer)
