/** The end mark of an OpenAI stream. */
export const doneFrame = 'data: [DONE]\n\n'

/** Returns one event of a chat stream. */
export function dataFrame(value: unknown): string {
  return `data: ${JSON.stringify(value)}\n\n`
}
