import { useMutation } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import { apiErrorOf } from '../../../api/api-error.ts'
import { Code } from '../../../ui/data/code.tsx'
import { Status, type Tone } from '../../../ui/data/status.tsx'
import type { Column } from '../../../ui/data/table.tsx'
import { VirtualTable } from '../../../ui/data/virtual-table.tsx'
import { longDayText } from '../../../ui/format/dates.ts'
import { download } from '../../../ui/format/download.ts'
import { count } from '../../../ui/format/numbers.ts'
import { Button } from '../../../ui/forms/button.tsx'
import { Empty } from '../../../ui/layout/empty.tsx'
import { InlineError } from '../../../ui/layout/error-panel.tsx'
import { Panel } from '../../../ui/layout/panel.tsx'
import { text } from '../text.ts'
import { mayVerify } from './signature.ts'
import { type DayResult, rowDaysMax, type VerifyResult, verifyHeads } from './verify-heads.ts'

const tones: Readonly<Record<DayResult['state'], Tone>> = { good: 'good', partial: 'warn', bad: 'bad', head: 'good' }

const columns: readonly Column<DayResult>[] = [
  { key: 'day', head: text.verify.columns.day, isName: true, cell: ({ head }) => longDayText(head.payload.day) },
  { key: 'state', head: text.verify.columns.state, cell: ({ state }) => <Status tone={tones[state]}>{text.verify.states[state]}</Status> },
  { key: 'calls', head: text.verify.columns.calls, align: 'end', cell: ({ head }) => count(head.payload.calls.count) },
  { key: 'acts', head: text.verify.columns.acts, align: 'end', cell: ({ head }) => count(head.payload.acts.count) },
  { key: 'why', head: text.verify.columns.why, isOnCards: true, cell: ({ faults }) => (faults.length === 0 ? '–' : faults.join(' ')) },
]

/** Checks the signed records of tools, and names the days that differ. */
export function VerifyTab() {
  const [done, setDone] = useState(0)
  const leaving = useRef(new AbortController())
  useEffect(() => {
    leaving.current = new AbortController()
    return () => leaving.current.abort()
  }, [])
  const check = useMutation({
    mutationFn: () => {
      setDone(0)
      return verifyHeads(setDone, leaving.current.signal)
    },
  })
  return (
    <>
      <Panel title={text.verify.title}>
        <div className="stack-5">
          <p className="quiet">{text.verify.about}</p>
          {mayVerify() ? (
            <div className="verify-acts">
              <Button look="primary" icon="shield" isBusy={check.isPending} onClick={() => check.mutate()}>
                {check.data ? text.verify.again : text.verify.run}
              </Button>
              <span role="status">{check.isPending ? text.verify.busy(done) : ''}</span>
            </div>
          ) : (
            <p>{text.verify.insecure}</p>
          )}
          {check.error && <InlineError error={apiErrorOf(check.error)} />}
          {check.data && check.data.days.length > 0 && <Verdict result={check.data} />}
          <p className="quiet">{text.verify.trust}</p>
          <Code text={text.verify.command} />
        </div>
      </Panel>
      {check.data && (
        <Panel isFlush>
          {check.data.days.length === 0 ? (
            <Empty icon="shield" title={text.verify.noHeads}>
              {text.verify.noHeadsHint}
            </Empty>
          ) : (
            <VirtualTable
              label={text.verify.title}
              columns={columns}
              rows={check.data.days}
              rowKey={({ head }) => head.payload.day}
              onMore={null}
              isLoadingMore={false}
            />
          )}
        </Panel>
      )}
    </>
  )
}

function Verdict({ result: { days, rows } }: { readonly result: VerifyResult }) {
  const bad = days.filter(({ state }) => state === 'bad').length
  const partial = days.filter(({ state }) => state === 'partial').length
  return (
    <div className="stack-3" role="status">
      <p className="verify-verdict">
        <Status tone={bad > 0 ? 'bad' : partial > 0 ? 'warn' : 'good'}>{bad > 0 ? text.verify.states.bad : text.verify.states.good}</Status>
        <span>{bad > 0 ? text.verify.bad(bad) : text.verify.good(days.length - partial, rows)}</span>
      </p>
      {partial > 0 && <p>{text.verify.partial(partial)}</p>}
      {days.length > rowDaysMax && <p className="quiet">{text.verify.limited(rowDaysMax)}</p>}
      <div className="verify-acts">
        <Button
          icon="download"
          onClick={() => download('heads.json', 'application/json', JSON.stringify({ heads: days.toReversed().map(({ head }) => head) }, null, 2))}
        >
          {text.verify.save}
        </Button>
        <span className="quiet">{text.verify.saveHint}</span>
      </div>
    </div>
  )
}
