import { useState } from 'react'
import { MiddleCut } from '../../../ui/data/code.tsx'
import { Status, Tag } from '../../../ui/data/status.tsx'
import type { Column } from '../../../ui/data/table.tsx'
import { Time } from '../../../ui/data/time.tsx'
import { VirtualTable } from '../../../ui/data/virtual-table.tsx'
import { Button } from '../../../ui/forms/button.tsx'
import { Choice } from '../../../ui/forms/list-filters.tsx'
import { Icon } from '../../../ui/icon.tsx'
import { Empty } from '../../../ui/layout/empty.tsx'
import { Loaded, Panel } from '../../../ui/layout/panel.tsx'
import { Skeleton } from '../../../ui/layout/skeleton.tsx'
import { pinStates, type ServerSearch } from '../search.ts'
import { pinShown, text } from '../text.ts'
import { type Pin, type PinState, type ToolServer, usePins, waitingOf } from '../use-tools.ts'
import { ApproveAll } from './approve-all.tsx'

/** The state of a tool, as an icon and a word. */
export function PinStatus({ state }: { readonly state: PinState }) {
  const { tone, icon, word, means } = pinShown[state]
  return (
    <Status tone={tone} title={means} {...(icon === undefined ? {} : { icon })}>
      {word}
    </Status>
  )
}

const columns: readonly Column<Pin>[] = [
  {
    key: 'name',
    head: text.pins.columns.name,
    isName: true,
    cell: ({ name, approvable, state }) => (
      <span className="pin-name">
        <MiddleCut text={name} max={44} />
        {!approvable && state !== 'gone' && <Tag>{text.pins.hidden}</Tag>}
      </span>
    ),
  },
  { key: 'state', head: text.pins.columns.state, cell: ({ state }) => <PinStatus state={state} /> },
  { key: 'seen', head: text.pins.columns.seen, isOnCards: false, cell: ({ seen_at: at }) => <Time at={at} /> },
  { key: 'approved', head: text.pins.columns.approved, align: 'end', cell: ({ approved_at: at }) => <Time at={at} /> },
]

interface ToolsOfServerProps {
  readonly server: ToolServer
  readonly state: PinState | undefined
  readonly isAdmin: boolean
  readonly onShow: (search: ServerSearch) => void
}

/** The tools of a server with their states. What waits for a person is said above. */
export function ToolsOfServer({ server, state, isAdmin, onShow }: ToolsOfServerProps) {
  const pins = usePins(server, state)
  const all = pinStates.reduce((sum, each) => sum + server.tools[each], 0)
  const filtered = state === undefined ? {} : { state }
  return (
    <>
      {waitingOf(server) > 0 && <Waiting server={server} isAdmin={isAdmin} onShow={onShow} />}
      <search className="list-filters">
        <Choice
          label={text.pins.state}
          value={state ?? ''}
          onChange={chosen => {
            const next = pinStates.find(each => each === chosen)
            onShow(next === undefined ? {} : { state: next })
          }}
        >
          <option value="">{text.pins.any(all)}</option>
          {pinStates.map(each => (
            <option key={each} value={each}>
              {text.pins.withCount(pinShown[each].word, server.tools[each])}
            </option>
          ))}
        </Choice>
      </search>
      <Panel isFlush>
        <Loaded query={pins} skeleton={<Skeleton lines={6} height={28} />}>
          {rows =>
            rows.length === 0 && !pins.hasNextPage ? (
              <Empty icon="list" title={text.pins.emptyTitle}>
                {state === undefined && server.last_sync_at === null ? text.pins.unread : text.pins.empty}
              </Empty>
            ) : (
              <VirtualTable
                label={text.server.tabs.tools}
                columns={columns}
                rows={rows}
                rowKey={({ name }) => name}
                onOpen={({ name }) => onShow({ ...filtered, tool: name })}
                onMore={pins.hasNextPage ? () => void pins.fetchNextPage() : null}
                isLoadingMore={pins.isFetchingNextPage}
              />
            )
          }
        </Loaded>
      </Panel>
    </>
  )
}

function Waiting({ server, isAdmin, onShow }: Pick<ToolsOfServerProps, 'server' | 'isAdmin' | 'onShow'>) {
  const [isApproving, setApproving] = useState(false)
  const { pending, changed } = server.tools
  return (
    <section className="waiting" aria-label={text.pins.waits(pending, changed)}>
      <Icon name="clock" />
      <div>
        <p className="waiting-title">{text.pins.waits(pending, changed)}</p>
        <p>{text.pins.waitsHint}</p>
      </div>
      <div className="waiting-acts">
        {pending > 0 && (
          <Button size="sm" onClick={() => onShow({ state: 'pending' })}>
            {text.pins.showNew}
          </Button>
        )}
        {changed > 0 && (
          <Button size="sm" onClick={() => onShow({ state: 'changed' })}>
            {text.pins.showChanged}
          </Button>
        )}
        {pending > 0 && isAdmin && (
          <Button size="sm" icon="check" onClick={() => setApproving(true)}>
            {text.pins.approveAll}…
          </Button>
        )}
      </div>
      {isApproving && <ApproveAll server={server} onClose={() => setApproving(false)} />}
    </section>
  )
}
