import { NumberField, SelectField } from '../../../ui/forms/field.tsx'
import { choiceOf, limitOf, type MoneyChoice, MoneyField } from '../../../ui/forms/money-field.tsx'
import { text } from '../text.ts'
import type { ServerBody, ToolServer } from '../use-tools.ts'

/** The terms of the calls of a server, as a person typed them. */
export interface Terms {
  /** No amount: a call costs nothing. */
  readonly price: MoneyChoice
  /** Empty: the time of the gateway. */
  readonly seconds: string
  readonly residency: ToolServer['residency']
}

/** The terms of a server for which nobody chooses others. */
export const usualTerms: Terms = { price: choiceOf(null), seconds: '', residency: 'global' }

const msOfSecond = 1_000
const secondsMax = 300

/** Returns the terms of a server as text. */
export const termsIn = ({ price_inr_per_call: price, timeout_ms: ms, residency }: ToolServer): Terms => ({
  price: choiceOf(price === 0 ? null : price),
  seconds: ms === null ? '' : String(ms / msOfSecond),
  residency,
})

const secondsIn = (typed: string): number | null | undefined => {
  if (typed === '') return null
  const seconds = Number(typed)
  return /^\d{1,3}(?:\.\d{1,3})?$/.test(typed) && seconds > 0 && seconds <= secondsMax ? seconds : undefined
}

/** Returns whether everything that was typed can be sent. */
export const termsReady = ({ price, seconds }: Terms): boolean => limitOf(price) !== undefined && secondsIn(seconds) !== undefined

/** Returns the terms that differ from before, as the gateway takes them. */
export function termsOf(terms: Terms, before: Terms): Pick<ServerBody, 'price_inr_per_call' | 'timeout_ms' | 'residency'> {
  const [price, seconds] = [limitOf(terms.price) ?? 0, secondsIn(terms.seconds)]
  return {
    ...(price === (limitOf(before.price) ?? 0) ? {} : { price_inr_per_call: price }),
    ...(seconds === undefined || terms.seconds === before.seconds ? {} : { timeout_ms: seconds === null ? null : Math.round(seconds * msOfSecond) }),
    ...(terms.residency === before.residency ? {} : { residency: terms.residency }),
  }
}

/** The fields for price, time and place. */
export function TermFields({ value, onChange }: { readonly value: Terms; readonly onChange: (value: Terms) => void }) {
  return (
    <>
      <MoneyField
        label={text.form.price}
        hint={text.form.priceHint}
        noneLabel={text.form.free}
        value={value.price}
        onChange={price => onChange({ ...value, price })}
      />
      <div className="credential-pair">
        <NumberField
          label={text.form.seconds}
          hint={text.form.secondsHint}
          placeholder={text.form.secondsPlaceholder}
          value={value.seconds}
          error={secondsIn(value.seconds) === undefined ? text.form.secondsWrong : null}
          onChange={event => onChange({ ...value, seconds: event.target.value.trim() })}
        />
        <SelectField
          label={text.form.place}
          hint={text.form.placeHint}
          value={value.residency}
          onChange={event => onChange({ ...value, residency: event.target.value === 'india' ? 'india' : 'global' })}
        >
          <option value="global">{text.form.places.global}</option>
          <option value="india">{text.form.places.india}</option>
        </SelectField>
      </div>
    </>
  )
}
