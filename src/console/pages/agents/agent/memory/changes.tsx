import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { lazy, Suspense, useId, useState } from 'react'
import { addDays, exactTime, istDay, istTime, longDayText } from '../../../../ui/format/dates.ts'
import { Button } from '../../../../ui/forms/button.tsx'
import { Icon } from '../../../../ui/icon.tsx'
import { ErrorPanel } from '../../../../ui/layout/error-panel.tsx'
import { Loaded, Panel } from '../../../../ui/layout/panel.tsx'
import { Skeleton } from '../../../../ui/layout/skeleton.tsx'
import { versionName } from '../../../memory/history/history-view.tsx'
import { historyText } from '../../../memory/history/text.ts'
import { objectQuery } from '../../../memory/use-memory.ts'
import { text } from '../text.ts'
import { type Change, changeDays, type DayOfChanges, useChanges } from './use-changes.ts'

const DiffTable = lazy(() => import('../../../../ui/compare/diff-table.tsx').then(({ DiffTable: component }) => ({ default: component })))
const words = text.changes
/** Changes that are open when the tab is. */
const openFirst = 2
/** Characters of both versions together that are compared. */
const comparedCharsMax = 256 * 1024

/** What an agent wrote in the last days, by day, each with what was there before. */
export function Changes({ agentId }: { readonly agentId: number }) {
  const { days, isCut, error, retry } = useChanges(agentId)
  return (
    <Panel title={words.title} note={words.note(changeDays)} isFlush>
      {error !== null ? (
        <ErrorPanel error={error} onRetry={retry} />
      ) : days === undefined ? (
        <div className="changes-wait" aria-busy="true">
          <Skeleton lines={5} />
        </div>
      ) : days.length === 0 ? (
        <p className="agent-hint">{words.none(changeDays)}</p>
      ) : (
        <Days days={days} isCut={isCut} />
      )}
    </Panel>
  )
}

function Days({ days, isCut }: { readonly days: readonly DayOfChanges[]; readonly isCut: boolean }) {
  const today = istDay(Date.now())
  const firstOpen = new Set(
    days
      .flatMap(({ changes }) => changes)
      .slice(0, openFirst)
      .map(nameOf),
  )
  return (
    <>
      {days.map(({ day, changes }) => (
        <section key={day} className="changes-day" aria-label={dayName(day, today)}>
          <h3>
            {dayName(day, today)} <span className="quiet">{words.many(changes.length)}</span>
          </h3>
          <ul>
            {changes.map(change => (
              <ChangeLine key={nameOf(change)} change={change} isFirstOpen={firstOpen.has(nameOf(change))} />
            ))}
          </ul>
        </section>
      ))}
      {isCut && <p className="agent-hint">{words.cut}</p>}
    </>
  )
}

const nameOf = ({ key, version }: Change): string => `${key} ${versionName(version)}`

function dayName(day: string, today: string): string {
  if (day === today) return words.today
  return day === addDays(today, -1) ? words.yesterday : longDayText(day)
}

function ChangeLine({ change, isFirstOpen }: { readonly change: Change; readonly isFirstOpen: boolean }) {
  const [isOpen, setOpen] = useState(isFirstOpen)
  const id = useId()
  const { key, version, before } = change
  const isDeleted = version.how === 'delete'
  return (
    <li className="change">
      <div className="change-head">
        <time className="tabular" dateTime={version.modified} title={exactTime(version.modified)}>
          {istTime(version.modified)}
        </time>
        <Link to="/memory/$" params={{ _splat: key }} className="cell-link memory-key">
          {key}
        </Link>
        <span className="quiet change-how">{before === null && !isDeleted ? words.made : historyText.hows[version.how]}</span>
        {!isDeleted && (
          <Button size="sm" look="ghost" aria-expanded={isOpen} aria-controls={id} onClick={() => setOpen(!isOpen)}>
            <Icon name={isOpen ? 'up' : 'down'} size={14} />
            {isOpen ? words.hide : words.show}
            <span className="visually-hidden"> {words.of(key)}</span>
          </Button>
        )}
      </div>
      <div id={id} className="change-body">
        {isOpen && !isDeleted && <Difference change={change} />}
      </div>
    </li>
  )
}

function Difference({ change: { key, version, before } }: { readonly change: Change }) {
  const after = useQuery(objectQuery(key, version.version))
  const old = useQuery({ ...objectQuery(key, before?.version ?? null), enabled: before != null })
  if (before === undefined) return <p className="agent-hint">{words.beforeGone}</p>
  const wait = <Skeleton lines={6} />
  const table = (from: string | null, to: string | null) =>
    from === null || to === null || from.length + to.length > comparedCharsMax ? (
      <p className="agent-hint">{words.notCompared}</p>
    ) : (
      <Suspense fallback={wait}>
        <DiffTable before={from} after={to} beforeName={before === null ? words.nothing : sideName(words.before, before)} afterName={words.after} />
      </Suspense>
    )
  return (
    <Loaded query={after} skeleton={wait}>
      {({ text: fresh }) =>
        before === null ? (
          table('', fresh)
        ) : (
          <Loaded query={old} skeleton={wait}>
            {({ text: earlier }) => table(earlier, fresh)}
          </Loaded>
        )
      }
    </Loaded>
  )
}

/** Names a side of a comparison: what it is, who wrote it, and when. */
function sideName(what: string, { author_name: person, agent_name: agent, modified }: NonNullable<Change['before']>): string {
  return words.side(what, agent ?? person, exactTime(modified))
}
