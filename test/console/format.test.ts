import { expect, test } from 'vitest'
import { fits } from '../../src/console/app/commands/fits.ts'
import { type Activity, chartSpan, monthOf, seriesOf, spanOf } from '../../src/console/pages/overview/figures.ts'
import { roundTop } from '../../src/console/ui/charts/round-top.ts'
import { addDays, daysBetween, daysInMonth, istDay, relativeTime } from '../../src/console/ui/format/dates.ts'
import {
  count,
  displayMoney,
  money,
  percent,
  readAmount,
  setDisplayCurrency,
  setGrouping,
  shortMoney,
  withDisplay,
} from '../../src/console/ui/format/numbers.ts'

test('amounts have Indian grouping and two decimals, and small ones keep three digits that count', () => {
  expect([money(1_234_567.891), money(0.00176), money(0), money(-5)]).toEqual(['₹12,34,567.89', '₹0.00176', '₹0.00', '-₹5.00'])
  expect([shortMoney(1_234_567), shortMoney(35_000_000), shortMoney(500), shortMoney(99.5)]).toEqual(['₹12.3L', '₹3.5Cr', '₹500', '₹99.50'])
  expect([count(431_567_890), percent(0.9), percent(0.0019), percent(0.055)]).toEqual(['43,15,67,890', '90%', '0.19%', '5.5%'])
  setGrouping('international')
  expect([money(1_234_567.891), count(431_567_890)]).toEqual(['₹1,234,567.89', '431,567,890'])
  setGrouping('indian')
})

test('amounts have the display currency beside the rupees, rounded half up once, and none without a currency', () => {
  expect([displayMoney(5), withDisplay('₹5', 5)]).toEqual([null, '₹5'])
  setDisplayCurrency({ currency: 'USD', rate: '88.25' })
  const plain = (text: string | null): string => (text ?? '').replaceAll('\u00a0', ' ')
  expect([88.25, 0, -176.5, 0.1, 1_234_567].map(inr => plain(displayMoney(inr)))).toEqual(['USD 1.00', 'USD 0.00', '-USD 2.00', 'USD 0.00113', 'USD 13,989.43'])
  expect(plain(withDisplay('₹88.25', 88.25))).toBe('₹88.25 · USD 1.00')
  setDisplayCurrency(null)
  expect(displayMoney(5)).toBeNull()
})

test.each([
  ['500', 500],
  [' ₹12,34,567.5 ', 1_234_567.5],
  ['0.000001', 0.000001],
])('an amount typed as %s is read', (typed, inr) => {
  expect(readAmount(typed)).toEqual({ ok: true, inr })
})

test.each([
  '',
  '0',
  '0.00',
  '0,25',
  '12,5',
  '1,2345',
  ',500',
  '1,,000',
  '₹ 7,50.5',
  '-5',
  '1e3',
  '0.0000001',
  '12.5.1',
  'ten',
  '2000000000',
  'Infinity',
  'NaN',
])('an amount typed as "%s" is refused with a reason', typed => {
  expect(readAmount(typed)).toMatchObject({ ok: false, why: expect.stringMatching(/\.$/) })
})

test('days are those of India: a day ends at 18:30 UTC, wherever the person is', () => {
  expect(istDay(Date.parse('2026-11-28T18:29:59Z'))).toBe('2026-11-28')
  expect(istDay(Date.parse('2026-11-28T18:30:00Z'))).toBe('2026-11-29')
  expect([addDays('2026-03-01', -1), addDays('2028-02-28', 1), daysInMonth('2028-02-10'), daysBetween('2026-12-30', '2027-01-02').length]).toEqual([
    '2026-02-28',
    '2028-02-29',
    29,
    4,
  ])
})

test('a moment is written as the distance from now', () => {
  const now = Date.parse('2026-11-28T12:00:00Z')
  const words = (at: string): string => relativeTime(at, now)
  expect([words('2026-11-28T11:59:40Z'), words('2026-11-28T11:00:00Z'), words('2026-12-10T12:00:00Z'), words('2025-11-01T00:00:00Z')]).toEqual([
    'just now',
    '1 hour ago',
    'in 12 days',
    'last year',
  ])
})

const day = (on: string, model: string, value: number, requests = 1) => ({
  day: on,
  model,
  requests,
  errors: 0,
  prompt_tokens: 0,
  completion_tokens: 0,
  tokens: 10,
  cost_inr: 0,
  value_inr: value,
  byok_requests: 0,
})
const activityOf = (days: ReturnType<typeof day>[]): Activity => ({
  from: '',
  to: '',
  group: 'day',
  totals: day('', '', 0),
  days,
  top_models: [],
  top_keys: [],
  by_agent: [],
  by_member: [],
  latency: null,
  model_providers: [],
  models: [],
  keys: [],
})

test('the overview asks for 30 days or the whole month, and sums the month alone', () => {
  expect(spanOf('2026-11-28')).toEqual({ from: '2026-10-30', to: '2026-11-28' })
  expect(spanOf('2026-12-31')).toEqual({ from: '2026-12-01', to: '2026-12-31' })
  const activity = activityOf([day('2026-10-31', 'a', 100), day('2026-11-01', 'a', 10), day('2026-11-10', 'b', 20)])
  const month = monthOf(activity, '2026-11-10', 0.5)
  expect([month.valueInr, month.calls, month.days]).toEqual([30, 2, 9.5])
  expect(month.forecastInr).toBeCloseTo((30 / 9.5) * 30)
})

test('a chart has seven models and the rest, and together they are the sum of the days', () => {
  const days = Array.from({ length: 12 }, (_, index) => day('2026-11-28', `model-${index}`, index + 1))
  const span = chartSpan('2026-11-28')
  const series = seriesOf(activityOf(days), 'spend', span)
  expect(series.map(({ name }) => name)).toEqual(['model-11', 'model-10', 'model-9', 'model-8', 'model-7', 'model-6', 'model-5', '5 others'])
  expect(series.flatMap(({ values }) => values).reduce((sum, value) => sum + value, 0)).toBe(78)
  expect(series.every(({ values }) => values.length === 30)).toBe(true)
})

test('the axis of a chart ends at a round number whose quarters are round', () => {
  expect([0, 0.07, 1, 7, 204, 999, 1_000_001].map(roundTop)).toEqual([1, 0.08, 1, 8, 240, 1_000, 1_200_000])
})

test('the palette finds a command by any of its words', () => {
  expect([fits('Go to Keys', 'key go'), fits('Go to Keys', 'KEYS'), fits('Go to Keys', 'agents'), fits('Go to Keys', '')]).toEqual([true, true, false, true])
})
