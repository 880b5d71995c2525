/** Writes amounts in words of the Indian numbering system: thousand, lakh, crore. */

const small = [
  '',
  'One',
  'Two',
  'Three',
  'Four',
  'Five',
  'Six',
  'Seven',
  'Eight',
  'Nine',
  'Ten',
  'Eleven',
  'Twelve',
  'Thirteen',
  'Fourteen',
  'Fifteen',
  'Sixteen',
  'Seventeen',
  'Eighteen',
  'Nineteen',
]
const tens = ['', '', 'Twenty', 'Thirty', 'Forty', 'Fifty', 'Sixty', 'Seventy', 'Eighty', 'Ninety']

const scales = [
  { value: 1_00_00_000n, name: 'Crore' },
  { value: 1_00_000n, name: 'Lakh' },
  { value: 1_000n, name: 'Thousand' },
  { value: 100n, name: 'Hundred' },
] as const

/** Returns an amount in words, such as `Rupees One Lakh Twenty Thousand and Paise Fifty Only`. The amount must be zero or more and can have any size. */
export function amountInWords(paise: bigint): string {
  const rupees = paise / 100n
  const rest = paise % 100n
  const parts = [rupees > 0n || rest === 0n ? `Rupees ${numberInWords(rupees)}` : '', rest > 0n ? `Paise ${numberInWords(rest)}` : '']
  return `${parts.filter(part => part !== '').join(' and ')} Only`
}

/** Returns a whole number in words. Returns `Zero` for 0. */
export function numberInWords(number: bigint): string {
  return number === 0n ? 'Zero' : wordsOf(number).join(' ')
}

function wordsOf(number: bigint): string[] {
  for (const { value, name } of scales) {
    if (number >= value) return [...wordsOf(number / value), name, ...wordsOf(number % value)]
  }
  if (number < 20n) return number === 0n ? [] : [small[Number(number)] ?? '']
  return [tens[Number(number / 10n)] ?? '', ...wordsOf(number % 10n)]
}
