import { BudgetBar } from '../../../ui/charts/budget-bar.tsx'
import { useNow } from '../../../ui/data/time.tsx'
import { exactTime } from '../../../ui/format/dates.ts'
import { count, shortMoney } from '../../../ui/format/numbers.ts'
import { Panel } from '../../../ui/layout/panel.tsx'
import type { WholeRun } from '../use-runs.ts'
import { text } from './run-text.ts'

/** The caps of a run, each with a bar of what is used. */
export function CapsPanel({ run }: { readonly run: WholeRun }) {
  const now = useNow()
  const { max_cost_inr: cost, max_calls: calls, max_minutes: minutes, max_subagents: subagents } = run
  const { increase_inr: moreInr, increase_calls: moreCalls, increase_until: until } = run
  const hasNone = cost === null && calls === null && minutes === null && subagents === null
  const elapsed = Math.max(0, Math.floor((now - Date.parse(run.first_at)) / 60_000))
  return (
    <Panel title={text.capsTitle}>
      {hasNone ? (
        <p className="quiet">{text.capsNone}</p>
      ) : (
        <dl className="run-caps">
          {cost !== null && (
            <div>
              <dt>
                <span>{text.cost}</span>
                <span className="tabular">{text.figure(shortMoney(run.value_inr), shortMoney(cost + (moreInr ?? 0)))}</span>
              </dt>
              <dd>
                <BudgetBar capInr={cost + (moreInr ?? 0)} spentInr={run.value_inr} hasFigures={false} />
              </dd>
            </div>
          )}
          {calls !== null && <CountBar name={text.calls} used={run.calls} cap={calls + (moreCalls ?? 0)} write={count} />}
          {minutes !== null && <CountBar name={text.time} used={elapsed} cap={minutes} write={text.minutes} />}
          {subagents !== null && (
            <div>
              <dt>
                <span>{text.subagents}</span>
                <span>{text.subagentsCap(subagents)}</span>
              </dt>
            </div>
          )}
        </dl>
      )}
      {until !== undefined && <p className="quiet">{text.more(moreInr, moreCalls, exactTime(until))}</p>}
    </Panel>
  )
}

const warnShare = 0.8

interface CountBarProps {
  readonly name: string
  readonly used: number
  readonly cap: number
  readonly write: (many: number) => string
}

function CountBar({ name, used, cap, write }: CountBarProps) {
  const share = cap === 0 ? 1 : used / cap
  const tone = share >= 1 ? 'bad' : share >= warnShare ? 'warn' : 'calm'
  const words = text.usedOf(name, write(used), write(cap))
  return (
    <div>
      <dt>
        <span>{name}</span>
        <span className="tabular">{text.figure(write(used), write(cap))}</span>
      </dt>
      <dd>
        <div className="budget">
          <div className={`budget-bar budget-${tone}`} role="img" aria-label={words} title={words}>
            <span className="budget-spent" style={{ inlineSize: `${Math.min(100, share * 100)}%` }} />
          </div>
        </div>
      </dd>
    </div>
  )
}
