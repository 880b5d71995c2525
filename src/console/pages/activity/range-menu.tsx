import { useState } from 'react'
import { Button } from '../../ui/forms/button.tsx'
import { TextField } from '../../ui/forms/field.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Dialog } from '../../ui/overlays/dialog.tsx'
import { Menu, MenuItem, MenuLine } from '../../ui/overlays/menu.tsx'
import { daysOfRange, defaultRange, isDay, lengthOf, rangeNames, type Span, type SpanSearch, spanDaysMax, spanOf, spanText } from './span.ts'
import { activityText as text } from './text.ts'

interface RangeMenuProps {
  readonly value: SpanSearch
  readonly today: string
  readonly onChange: (span: SpanSearch) => void
}

/** The choice of the span: ranges that move with the day, or two days. */
export function RangeMenu({ value, today, onChange }: RangeMenuProps) {
  const [isOther, setOther] = useState(false)
  const span = spanOf(value, today)
  const chosen = value.from === undefined ? (value.range ?? defaultRange) : null
  return (
    <>
      <Menu
        label={text.range}
        align="start"
        triggerClass="button button-plain button-md"
        trigger={
          <>
            <Icon name="clock" />
            <span>{chosen === null ? spanText(span) : text.ranges[chosen]}</span>
            {chosen !== null && chosen !== 'today' && <span className="range-days">{spanText(span)}</span>}
            <Icon name="down" />
          </>
        }
      >
        {rangeNames.map(name => (
          <MenuItem key={name} isChecked={name === chosen} onClick={() => onChange(name === defaultRange ? {} : { range: name })}>
            <span className="range-item">
              {text.ranges[name]}
              <span className="quiet">{spanText(daysOfRange(name, today))}</span>
            </span>
          </MenuItem>
        ))}
        <MenuLine />
        <MenuItem isChecked={chosen === null} onClick={() => setOther(true)}>
          {text.custom}
        </MenuItem>
      </Menu>
      {isOther && (
        <OtherDays
          span={span}
          today={today}
          onClose={() => setOther(false)}
          onShow={days => {
            setOther(false)
            onChange(days)
          }}
        />
      )}
    </>
  )
}

interface OtherDaysProps {
  readonly span: Span
  readonly today: string
  readonly onShow: (span: Span) => void
  readonly onClose: () => void
}

function OtherDays({ span, today, onShow, onClose }: OtherDaysProps) {
  const [from, setFrom] = useState(span.from)
  const [to, setTo] = useState(span.to)
  const isComplete = isDay(from) && isDay(to)
  const isRight = isComplete && from <= to && lengthOf({ from, to }) <= spanDaysMax
  return (
    <Dialog
      title={text.customTitle}
      width="sm"
      onClose={onClose}
      onSubmit={() => isRight && onShow({ from, to })}
      actions={
        <>
          <Button onClick={onClose}>{text.cancel}</Button>
          <Button look="primary" type="submit" disabled={!isRight}>
            {text.show}
          </Button>
        </>
      }
    >
      <div className="range-dates">
        <TextField label={text.from} type="date" max={today} value={from} onChange={event => setFrom(event.target.value)} />
        <TextField
          label={text.to}
          type="date"
          max={today}
          value={to}
          error={isComplete && !isRight ? text.wrongSpan : null}
          onChange={event => setTo(event.target.value)}
        />
      </div>
      <p className="field-hint">{text.customHint}</p>
    </Dialog>
  )
}
