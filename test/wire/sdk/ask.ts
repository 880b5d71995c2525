/** The request to every client package, and its answer, in one form for all packages. */

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
  /** The finish reason in the terms of the package. */
  readonly finish: string
  readonly reasoning: string
  /** The answer as the package has parsed it by the schema. */
  readonly object: unknown
}

export interface SdkClient {
  readonly name: string
  readonly api: 'chat' | 'responses' | 'messages'
  ask(ask: Ask): Promise<Told>
  /** Returns the HTTP status of an error of this package, or undefined for an error without an HTTP reply. */
  statusOf(error: unknown): unknown
  /** Scenarios that the package or its API does not support, with the reason. */
  readonly cannot: Readonly<Record<string, string>>
  /** The finish reasons of the package: for a plain answer, with tool calls, at the token limit, and for a refusal. */
  readonly finishes: { readonly stop: string; readonly tools: string; readonly length: string; readonly refused: string }
}

export const question = 'What is the weather in Pune?'
export const pixelBase64 = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
export const pixelUrl = `data:image/png;base64,${pixelBase64}`

const cityProperties = { city: { type: 'string' as const } }
export const citySchema = { type: 'object' as const, properties: cityProperties, required: ['city'], additionalProperties: false }
export const weatherTool = { name: 'get_weather', description: 'Weather of a city', parameters: citySchema }

/** An answer that fits the schema. */
export const answer = { city: 'Pune' }
export const answerText = JSON.stringify(answer)
