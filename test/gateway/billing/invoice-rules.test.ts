import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { financialYear, invoiceNumber, seriesOf } from '../../../src/gateway/billing/invoices/invoice-number.ts'
import { stateOfGstin } from '../../../src/gateway/billing/invoices/invoice-parties.ts'
import { sellerOf } from '../../../src/gateway/billing/invoices/invoice-seller.ts'
import { html } from '../../../src/gateway/billing/invoices/pages/html-text.ts'
import { amountInWords, numberInWords } from '../../../src/gateway/billing/invoices/tax/amount-in-words.ts'
import { gstStates, isTerritory, stateName } from '../../../src/gateway/billing/invoices/tax/gst-states.ts'
import { longDay, longMinute, rupeesOf } from '../../../src/gateway/billing/invoices/tax/indian-money.ts'
import { paiseOf, splitTax, type TaxKind, taxKindOf } from '../../../src/gateway/billing/invoices/tax/invoice-tax.ts'
import { loadConfig } from '../../../src/platform/config.ts'

const anyPaise = fc.bigInt({ min: 1n, max: 10n ** 13n })

describe('the tax contained in an amount', () => {
  test('the parts of an amount add up to it to the paisa, CGST equals SGST, and each tax is within half a paisa of the exact rate', () => {
    fc.assert(
      fc.property(anyPaise, fc.constantFrom<TaxKind>('none', 'intra', 'inter'), (totalPaise, kind) => {
        const { taxablePaise, cgstPaise, sgstPaise, igstPaise } = splitTax(totalPaise, kind)
        expect(taxablePaise + cgstPaise + sgstPaise + igstPaise).toBe(totalPaise)
        expect(cgstPaise).toBe(sgstPaise)
        for (const part of [taxablePaise, cgstPaise, igstPaise]) expect(part >= 0n).toBe(true)
        // Twice the distance between the part and total × rate ÷ 118, all multiplied by 118. It is at most 118.
        const distance = (part: bigint, rate: bigint): bigint => (part * 118n - totalPaise * rate) * 2n
        if (kind === 'intra') expect(abs(distance(cgstPaise, 9n)) <= 118n && igstPaise === 0n).toBe(true)
        else if (kind === 'inter') expect(abs(distance(igstPaise, 18n)) <= 118n && cgstPaise === 0n).toBe(true)
        else expect(taxablePaise).toBe(totalPaise)
        // The taxable value takes the rounding difference, which is at most one paisa.
        if (kind !== 'none') expect(abs(taxablePaise * 118n - totalPaise * 100n) <= 118n).toBe(true)
      }),
    )
  })

  test.each([
    [10_000n, 'intra', 8474n, 763n, 0n],
    [10_000n, 'inter', 8475n, 0n, 1525n],
    [10_000_000n, 'intra', 8_474_576n, 762_712n, 0n],
    [10_000_000n, 'inter', 8_474_576n, 0n, 1_525_424n],
    [1n, 'intra', 1n, 0n, 0n],
    [10_000n, 'none', 10_000n, 0n, 0n],
  ] as const)('of %s paise (%s), the taxable value is %s, CGST is %s and IGST is %s', (total, kind, taxable, cgst, igst) => {
    expect(splitTax(total, kind)).toEqual({ totalPaise: total, taxablePaise: taxable, cgstPaise: cgst, sgstPaise: cgst, igstPaise: igst })
  })

  test('the kind of tax depends on the states of seller and buyer; a seller without a GSTIN charges no tax', () => {
    expect([taxKindOf('29', '29'), taxKindOf('29', '27'), taxKindOf(null, '29')]).toEqual(['intra', 'inter', 'none'])
    // Andhra Pradesh had code 28 and now has 37. Daman and Diu, code 25, is now a part of 26.
    expect([stateOfGstin('28AAGCB7383J1Z6'), stateOfGstin('25AAGCB7383J1ZC'), stateOfGstin('29AAGCB7383J1Z4'), stateOfGstin(null)]).toEqual([
      '37',
      '26',
      '29',
      null,
    ])
  })

  test('an invoice needs a whole number of paise above zero', () => {
    expect(paiseOf(100_000_000n)).toBe(10_000n)
    for (const wrong of [0n, -10_000n, 1n, 10_001n]) expect(() => paiseOf(wrong)).toThrow(RangeError)
  })
})

describe('numbers of invoices', () => {
  test('the financial year changes at midnight IST between 31 March and 1 April', () => {
    expect(financialYear(Date.parse('2027-03-31T18:29:59.999Z'))).toBe('26-27')
    expect(financialYear(Date.parse('2027-03-31T18:30:00.000Z'))).toBe('27-28')
    expect(financialYear(Date.parse('2026-12-31T18:30:00.000Z'))).toBe('26-27')
    expect(financialYear(Date.parse('2099-06-01T00:00:00.000Z'))).toBe('99-00')
  })

  test('an instant belongs to the financial year that began at midnight IST on the last 1 April before it', () => {
    const april = (year: number): number => Date.parse(`${year}-03-31T18:30:00.000Z`)
    fc.assert(
      fc.property(fc.integer({ min: 2017, max: 2098 }), fc.integer({ min: 0, max: 365 * 24 * 3600_000 - 1 }), (year, laterMs) => {
        const two = (n: number): string => String(n % 100).padStart(2, '0')
        expect(financialYear(april(year) + laterMs)).toBe(`${two(year)}-${two(year + 1)}`)
        expect(financialYear(april(year + 1) - 1 - laterMs)).toBe(`${two(year)}-${two(year + 1)}`)
      }),
    )
  })

  test('a number has at most 16 characters, numbers sort in the order of issue, and a full series is an error', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[A-Z0-9]{1,3}$/), fc.integer({ min: 1, max: 999_998 }), (prefix, seq) => {
        const series = seriesOf(prefix, Date.parse('2026-11-22T00:00:00Z'))
        const number = invoiceNumber(series, seq)
        expect(number).toMatch(/^[A-Z0-9]{1,3}\/26-27\/\d{6}$/)
        expect(number.length).toBeLessThanOrEqual(16)
        expect(number < invoiceNumber(series, seq + 1)).toBe(true)
      }),
    )
    expect(invoiceNumber('BR/26-27', 1)).toBe('BR/26-27/000001')
    expect(invoiceNumber('BR/26-27', 1_000_000)).toBe('BR/26-27/1000000')
    expect(() => invoiceNumber('BRG/26-27', 1_000_000)).toThrow(/INVOICE_PREFIX/)
  })
})

describe('the seller', () => {
  const seller = (env: Record<string, string>) => sellerOf(loadConfig(env))

  test('the seller comes from the configuration, where commas separate the lines of the address', () => {
    expect(seller({ INVOICE_SELLER_NAME: ' Brigade Systems ', INVOICE_SELLER_ADDRESS: '4th Floor, 27 Residency Road, , Bengaluru 560025' })).toMatchObject({
      name: 'Brigade Systems',
      addressLines: ['4th Floor', '27 Residency Road', 'Bengaluru 560025'],
      gstin: null,
      prefix: 'BR',
    })
    expect(seller({ INVOICE_SELLER_GSTIN: '29aagcb7383j1z4' }).gstin).toBe('29AAGCB7383J1Z4')
  })

  test('a value that must not be on an invoice prevents the start, and the error names the setting', () => {
    for (const prefix of ['BRIG', 'br', 'B-', 'ब']) expect(() => seller({ INVOICE_PREFIX: prefix })).toThrow(/INVOICE_PREFIX/)
    for (const gstin of ['29AAGCB7383J1Z5', '29', '99AAGCB7383J1Z4']) expect(() => seller({ INVOICE_SELLER_GSTIN: gstin })).toThrow(/INVOICE_SELLER_GSTIN/)
    for (const sac of ['8315', '123456', '9983150']) expect(() => seller({ INVOICE_SAC: sac })).toThrow(/INVOICE_SAC/)
  })
})

describe('amounts as documents write them', () => {
  test.each([
    [0n, 'Rupees Zero Only'],
    [1n, 'Paise One Only'],
    [10_000n, 'Rupees One Hundred Only'],
    [1_050n, 'Rupees Ten and Paise Fifty Only'],
    [10_000_000n, 'Rupees One Lakh Only'],
    [12_34_567_89n, 'Rupees Twelve Lakh Thirty Four Thousand Five Hundred Sixty Seven and Paise Eighty Nine Only'],
    [1_00_00_000_00n, 'Rupees One Crore Only'],
    [1_23_45_67_890_00n, 'Rupees One Hundred Twenty Three Crore Forty Five Lakh Sixty Seven Thousand Eight Hundred Ninety Only'],
  ])('%s paise: %s', (paise, words) => {
    expect(amountInWords(paise)).toBe(words)
  })

  test('a number written in words reads back as the same number', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 10n ** 12n }), number => {
        expect(readWords(numberInWords(number))).toBe(number)
      }),
    )
  })

  test('rupees are grouped by lakh and crore, as in the locale data of the platform', () => {
    expect([0n, 5n, 99_999n, 10_000_000n, 1_234_567_890n].map(rupeesOf)).toEqual(['₹0.00', '₹0.05', '₹999.99', '₹1,00,000.00', '₹1,23,45,678.90'])
    fc.assert(
      fc.property(anyPaise, rupees => {
        expect(rupeesOf(rupees * 100n)).toBe(`₹${new Intl.NumberFormat('en-IN').format(rupees)}.00`)
      }),
    )
  })

  test('days and minutes are written in IST', () => {
    expect(longDay(Date.parse('2027-03-31T18:30:00Z'))).toBe('1 April 2027')
    expect(longMinute(Date.parse('2026-11-22T08:35:00Z'))).toBe('22 November 2026, 14:05 IST')
  })
})

describe('the state list', () => {
  test('the list has every state and union territory once, by code', () => {
    expect(gstStates).toHaveLength(37)
    expect(new Set(gstStates.map(({ name }) => name)).size).toBe(37)
    expect(gstStates.map(({ code }) => code)).toEqual([...gstStates.map(({ code }) => code)].sort())
    expect([stateName('29'), stateName('38'), stateName('25'), stateName('00')]).toEqual(['Karnataka', 'Ladakh', null, null])
    // Delhi, Puducherry and Jammu and Kashmir have legislatures and thus SGST.
    expect(['04', '26', '31', '35', '38', '97', '07', '34', '01'].filter(isTerritory)).toEqual(['04', '26', '31', '35', '38', '97'])
  })
})

describe('HTML templates', () => {
  test('no text in a template can produce markup or change the direction of other text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 60 }), typed => {
        const { text } = html`<p class="${typed}">${[typed, html`<b>${typed}</b>`]}</p>`
        expect(text.replace(/<\/?(p|b)( class="[^"<>]*")?>/g, '')).not.toMatch(/[<>"']/)
        expect(text).not.toMatch(/[\u202a-\u202e\u2066-\u2069\u200e\u200f]/)
      }),
    )
    expect(html`${'<script>'}${null}${'क्\u200dष'}`.text).toBe('&lt;script&gt;क्\u200dष')
  })
})

const abs = (n: bigint): bigint => (n < 0n ? -n : n)

/** Reads a number in words of the Indian system. It works word by word and shares no code with the product. */
function readWords(text: string): bigint {
  const ones = 'Zero One Two Three Four Five Six Seven Eight Nine Ten Eleven Twelve Thirteen Fourteen Fifteen Sixteen Seventeen Eighteen Nineteen'.split(' ')
  const tens = 'Twenty Thirty Forty Fifty Sixty Seventy Eighty Ninety'.split(' ')
  let done = 0n
  let open = 0n
  for (const word of text.split(' ')) {
    if (ones.includes(word)) open += BigInt(ones.indexOf(word))
    else if (tens.includes(word)) open += BigInt((tens.indexOf(word) + 2) * 10)
    else if (word === 'Hundred') open = (open / 1000n) * 1000n + (open % 1000n) * 100n
    else if (word === 'Crore') {
      done = (done + open) * 10_000_000n
      open = 0n
    } else {
      done += open * (word === 'Lakh' ? 100_000n : 1000n)
      open = 0n
    }
  }
  return done + open
}
