/**
 * A run of more marks than any script writes. U+FF9E and U+FF9F become marks in form NFKC. Sorting the marks of a run takes time in proportion to the square
 * of its length: 100,000 of them take five seconds. Decision 0511 gives the reasons.
 */
const longRun = /(?<![\p{M}\uff9e\uff9f])[\p{M}\uff9e\uff9f]{65}/u

/** Returns the text in Unicode normal form C. A text with a run of more than 64 combining marks is returned unchanged. */
export const normalFormC = (text: string): string => (longRun.test(text) ? text : text.normalize('NFC'))
