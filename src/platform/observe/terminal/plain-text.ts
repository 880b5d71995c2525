/** Control characters, and characters that change the direction of text. */
const steering = /[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]+/gu

/** Returns a text on one line that cannot control the terminal. */
export function plain(text: string): string {
  return text.replace(steering, ' ')
}

/** Returns the text without control characters, and shortened to `max` characters. */
export function plainShort(text: string, max: number): string {
  const characters = [...plain(text.slice(0, max * 4))]
  return characters.length > max ? `${characters.slice(0, max - 1).join('')}…` : characters.join('')
}
