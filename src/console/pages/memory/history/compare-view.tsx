import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { lazy, Suspense } from 'react'
import { hasRole, useMe } from '../../../app/me.tsx'
import { exactTime } from '../../../ui/format/dates.ts'
import { Button, IconButton } from '../../../ui/forms/button.tsx'
import { SelectField } from '../../../ui/forms/field.tsx'
import { Icon } from '../../../ui/icon.tsx'
import { Page } from '../../../ui/layout/page.tsx'
import { Loaded, Panel } from '../../../ui/layout/panel.tsx'
import { Skeleton } from '../../../ui/layout/skeleton.tsx'
import { Crumbs } from '../folder/crumbs.tsx'
import { isRecord, isWritable, nameOf, type Places } from '../places.ts'
import { objectQuery, useVersions, type Version } from '../use-memory.ts'
import { versionName } from './history-view.tsx'
import { historyText as words } from './text.ts'
import { useRestore } from './use-restore.ts'

const DiffTable = lazy(() => import('../../../ui/compare/diff-table.tsx').then(({ DiffTable: component }) => ({ default: component })))

/** Characters of both versions together that are compared. */
const comparedCharsMax = 1024 * 1024

interface CompareViewProps {
  readonly places: Places
  readonly path: string
  readonly from: string
  readonly to: string
}

/** Two versions of an object, line by line. The address names both, so a comparison has a link. */
export function CompareView({ places, path, from, to }: CompareViewProps) {
  const navigate = useNavigate()
  const me = useMe()
  const versions = useVersions(path)
  const restore = useRestore(path)
  const old = versions.data?.find(version => versionName(version) === from)
  const current = versions.data?.find(version => version.current)
  const show = (a: string, b: string): void =>
    void navigate({ to: '/memory/$', params: { _splat: path }, search: { view: 'history', from: a, to: b }, replace: true })
  const mayRestore = isRecord(path) ? hasRole(me, 'admin') : isWritable(path)
  return (
    <Page
      title={nameOf(path)}
      above={<Crumbs places={places} path={path} />}
      actions={
        <>
          <Button icon="back" onClick={() => void navigate({ to: '/memory/$', params: { _splat: path }, search: { view: 'history' } })}>
            {words.back}
          </Button>
          {mayRestore && old?.version && !old.current && (
            <Button
              icon="history"
              isBusy={restore.isPending}
              aria-label={words.restoreOf(exactTime(old.modified))}
              onClick={() => restore.mutate({ version: from, current })}
            >
              {words.restore}
            </Button>
          )}
        </>
      }
    >
      <div className="memory-compare-head">
        <VersionField label={words.from} value={from} versions={versions.data ?? []} onChange={name => show(name, to)} />
        <IconButton icon="upDown" label={words.swap} onClick={() => show(to, from)} />
        <VersionField label={words.to} value={to} versions={versions.data ?? []} onChange={name => show(from, name)} />
      </div>
      <Panel isFlush>
        <Comparison path={path} from={from} to={to} versions={versions.data ?? []} />
      </Panel>
    </Page>
  )
}

interface VersionFieldProps {
  readonly label: string
  readonly value: string
  readonly versions: readonly Version[]
  readonly onChange: (name: string) => void
}

const titleOf = (version: Version): string => {
  const by = version.agent_name ?? version.author_name
  return `${words.version(words.hows[version.how], exactTime(version.modified))}${by === null ? '' : `, ${by}`}`
}

function VersionField({ label, value, versions, onChange }: VersionFieldProps) {
  const texts = versions.filter(({ how }) => how !== 'delete')
  return (
    <SelectField label={label} value={value} onChange={event => onChange(event.target.value)}>
      {!texts.some(version => versionName(version) === value) && <option value={value}>{value}</option>}
      {texts.map(version => (
        <option key={versionName(version)} value={versionName(version)}>
          {titleOf(version)}
        </option>
      ))}
    </SelectField>
  )
}

function Comparison({ path, from, to, versions }: Omit<CompareViewProps, 'places'> & { readonly versions: readonly Version[] }) {
  const before = useQuery(objectQuery(path, from === 'current' ? null : from))
  const after = useQuery(objectQuery(path, to === 'current' ? null : to))
  const shortName = (name: string): string => {
    const version = versions.find(one => versionName(one) === name)
    return version === undefined ? name : `${exactTime(version.modified)} · ${version.agent_name ?? version.author_name ?? ''}`
  }
  return (
    <Loaded query={before} skeleton={<Skeleton lines={8} />}>
      {({ text: old }) => (
        <Loaded query={after} skeleton={<Skeleton lines={8} />}>
          {({ text: fresh }) =>
            old === null || fresh === null ? (
              <Note>{words.bytes}</Note>
            ) : old.length + fresh.length > comparedCharsMax ? (
              <Note>{words.large}</Note>
            ) : (
              <Suspense fallback={<Skeleton lines={8} />}>
                <DiffTable before={old} after={fresh} beforeName={shortName(from)} afterName={shortName(to)} />
              </Suspense>
            )
          }
        </Loaded>
      )}
    </Loaded>
  )
}

function Note({ children }: { readonly children: string }) {
  return (
    <p className="memory-note quiet">
      <Icon name="info" size={14} /> {children}
    </p>
  )
}
