/** Counts the digits of long texts, four bytes at a time. A prompt can be a hundred times longer than a reply, so a look at each character costs too much. */

/** Characters that are written into the scratch at a time. A character of a string has at most three bytes in UTF-8. */
const partChars = 10_922
const scratch = Buffer.alloc(32_768)
const words = new Int32Array(scratch.buffer, scratch.byteOffset, scratch.length / 4)
/** Four counters of one byte each overflow after 255 words. */
const wordsInCounters = 200

/** Returns the number of digits (0 to 9) in a text. */
export function digitsOf(text: string): number {
  let digits = 0
  for (let from = 0; from < text.length; from += partChars) {
    const bytes = scratch.write(text.length <= partChars ? text : text.slice(from, from + partChars))
    const count = (bytes + 3) >> 2
    // The rest of the last word is from an earlier text.
    scratch.fill(0, bytes, count << 2)
    digits += digitsIn(count)
  }
  return digits
}

/** Counts in the first words of the scratch. A byte is a digit if its upper half is 3 and adding 6 to its lower half does not carry. */
function digitsIn(count: number): number {
  let digits = 0
  for (let at = 0; at < count; ) {
    const end = Math.min(count, at + wordsInCounters)
    let counters = 0
    for (; at < end; at++) {
      const word = (words[at] as number) ^ 0x30303030
      const others = ((word & 0x7f7f7f7f) + 0x76767676) | word
      counters = (counters + ((~others & 0x80808080) >>> 7)) | 0
    }
    digits += (counters & 0xff) + ((counters >>> 8) & 0xff) + ((counters >>> 16) & 0xff) + (counters >>> 24)
  }
  return digits
}
