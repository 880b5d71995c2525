import { useQuery } from '@tanstack/react-query'
import { apiErrorOf } from '../../../api/api-error.ts'
import { apiQuery } from '../../../api/queries.ts'
import { DiffTable } from '../../../ui/compare/diff-table.tsx'
import { type Column, Table } from '../../../ui/data/table.tsx'
import { Time } from '../../../ui/data/time.tsx'
import { Button } from '../../../ui/forms/button.tsx'
import { InlineError } from '../../../ui/layout/error-panel.tsx'
import { Loaded, Panel } from '../../../ui/layout/panel.tsx'
import { toast } from '../../../ui/overlays/toast.tsx'
import { stepText } from '../../steps/draft-steps.ts'
import type { WholeCollection } from '../search.ts'
import { oneText, text } from '../text.ts'
import { useChangeCollection } from '../use-collections.ts'

type Version = WholeCollection['versions'][number]

interface VersionsTabProps {
  readonly collection: WholeCollection
  readonly isAdmin: boolean
  /** The version that is compared with the present one. */
  readonly compared: number | undefined
  readonly onCompare: (version: number | undefined) => void
}

/** The versions of a collection, the newest first, and what differs between one of them and now. */
export function VersionsTab({ collection, isAdmin, compared, onCompare }: VersionsTabProps) {
  const { versions, version: now } = collection
  if (versions.length < 2)
    return (
      <Panel>
        <p className="quiet">{oneText.onlyOne}</p>
      </Panel>
    )
  const columns: readonly Column<Version>[] = [
    {
      key: 'version',
      head: oneText.versionHead,
      isName: true,
      cell: ({ version }) => (
        <span className="tabular">
          {version}
          {version === now && <span className="quiet"> {oneText.now}</span>}
        </span>
      ),
    },
    { key: 'steps', head: text.columns.steps, cell: ({ steps }) => <span className="collection-line">{steps.map(stepText).join(' → ')}</span> },
    { key: 'when', head: oneText.when, isOnCards: false, cell: ({ created_at: at }) => <Time at={at} /> },
    {
      key: 'acts',
      head: '',
      align: 'end',
      cell: ({ version }) =>
        version !== now && (
          <Button size="sm" aria-label={oneText.compare(version)} onClick={() => onCompare(version)}>
            {oneText.compareAct}
          </Button>
        ),
    },
  ]
  return (
    <>
      <Panel isFlush>
        <Table
          label={oneText.tabs.versions}
          columns={columns}
          rows={versions}
          rowKey={({ version }) => version}
          isOpen={({ version }) => version === compared}
        />
      </Panel>
      {compared !== undefined && compared !== now && <Comparison key={compared} collection={collection} version={compared} isAdmin={isAdmin} />}
    </>
  )
}

/** Writes a version as lines, so that two of them can be compared. */
const linesOf = ({ name, model, steps, readme_md: readme }: Pick<WholeCollection, 'name' | 'model' | 'steps' | 'readme_md'>): string =>
  [`Name: ${name}`, `Model: ${model}`, ...steps.map((step, place) => `Step ${place + 1}: ${stepText(step)}`), '', ...readme.split('\n')].join('\n')

interface ComparisonProps {
  readonly collection: WholeCollection
  readonly version: number
  readonly isAdmin: boolean
}

function Comparison({ collection, version, isAdmin }: ComparisonProps) {
  const { id } = collection
  const old = useQuery(apiQuery('getCollection', { path: { id }, query: { version } }))
  const change = useChangeCollection(id, changed => toast(oneText.usedAgain(changed.version)))
  const again = ({ name, model, steps, readme_md }: WholeCollection): void => change.mutate({ name, model, steps, readme_md })
  return (
    <Panel
      title={oneText.comparison(version)}
      actions={
        isAdmin &&
        old.data && (
          <Button size="sm" icon="history" isBusy={change.isPending} onClick={() => old.data && again(old.data)}>
            {oneText.useAgain}
          </Button>
        )
      }
    >
      <div className="stack-3">
        {change.error && <InlineError error={apiErrorOf(change.error)} />}
        <Loaded query={old}>
          {before => (
            <DiffTable
              before={linesOf(before)}
              after={linesOf(collection)}
              beforeName={`${oneText.versionHead} ${version}`}
              afterName={`${oneText.versionHead} ${collection.version}`}
            />
          )}
        </Loaded>
      </div>
    </Panel>
  )
}
