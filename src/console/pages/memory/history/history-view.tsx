import { Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { apiErrorOf } from '../../../api/api-error.ts'
import { hasRole, useMe } from '../../../app/me.tsx'
import { Time } from '../../../ui/data/time.tsx'
import { exactTime } from '../../../ui/format/dates.ts'
import { bytesText } from '../../../ui/format/numbers.ts'
import { Button } from '../../../ui/forms/button.tsx'
import { Icon, type IconName } from '../../../ui/icon.tsx'
import { Empty } from '../../../ui/layout/empty.tsx'
import { Loaded } from '../../../ui/layout/panel.tsx'
import { Skeleton } from '../../../ui/layout/skeleton.tsx'
import { Author } from '../object/author.tsx'
import { ObjectFrame } from '../object/object-frame.tsx'
import { isRecord, isWritable, type Places } from '../places.ts'
import { useVersions, type Version } from '../use-memory.ts'
import { historyText as words } from './text.ts'
import { useRestore } from './use-restore.ts'

const icons: Readonly<Record<Version['how'], IconName>> = { put: 'edit', append: 'plus', restore: 'history', promote: 'promote', delete: 'trash' }

/** Returns the name of a version in addresses. A current object that was written past the gateway has no id. */
export const versionName = ({ version }: Version): string => version ?? 'current'

/** The versions of an object, newest first, with who wrote them. Two of them can be compared, and each can be restored. */
export function HistoryView({ places, path }: { readonly places: Places; readonly path: string }) {
  const versions = useVersions(path)
  const isNone = versions.isError && apiErrorOf(versions.error).status === 404
  return (
    <ObjectFrame places={places} path={path} view="history">
      {isNone ? (
        <Empty icon="history" title={words.noneTitle}>
          {words.none}
        </Empty>
      ) : (
        <Loaded query={versions} skeleton={<Skeleton lines={6} />}>
          {all => (
            <>
              <Timeline path={path} versions={all} />
              <div className="memory-history-end">
                {versions.hasNextPage && (
                  <Button size="sm" look="ghost" isBusy={versions.isFetchingNextPage} onClick={() => void versions.fetchNextPage()}>
                    {words.more}
                  </Button>
                )}
                <p className="quiet">{words.note}</p>
              </div>
            </>
          )}
        </Loaded>
      )}
    </ObjectFrame>
  )
}

function Timeline({ path, versions }: { readonly path: string; readonly versions: readonly Version[] }) {
  const navigate = useNavigate()
  const me = useMe()
  const texts = versions.filter(({ how }) => how !== 'delete')
  const [older, setOlder] = useState<string | null>(null)
  const [newer, setNewer] = useState<string | null>(null)
  const from = older ?? (texts[1] ? versionName(texts[1]) : null)
  const to = newer ?? (texts[0] ? versionName(texts[0]) : null)
  const restore = useRestore(path)
  const mayRestore = isRecord(path) ? hasRole(me, 'admin') : isWritable(path)
  const compare = (a: string, b: string): void => void navigate({ to: '/memory/$', params: { _splat: path }, search: { view: 'history', from: a, to: b } })
  return (
    <>
      {texts.length > 1 && (
        <div className="memory-history-head">
          <p className="quiet">{words.compareHint}</p>
          <Button size="sm" disabled={from === null || to === null || from === to} onClick={() => from !== null && to !== null && compare(from, to)}>
            {words.compare}
          </Button>
        </div>
      )}
      <ol className="memory-versions">
        {versions.map((version, place) => {
          const name = versionName(version)
          const before = versions.slice(place + 1).find(({ how }) => how !== 'delete')
          const isText = version.how !== 'delete'
          const when = exactTime(version.modified)
          return (
            <li key={name}>
              {texts.length > 1 && (
                <span className="memory-picks">
                  {isText && (
                    <>
                      <input type="radio" name="older" aria-label={`${words.from}: ${when}`} checked={from === name} onChange={() => setOlder(name)} />
                      <input type="radio" name="newer" aria-label={`${words.to}: ${when}`} checked={to === name} onChange={() => setNewer(name)} />
                    </>
                  )}
                </span>
              )}
              <span className={isText ? 'memory-how' : 'memory-how memory-how-gone'}>
                <Icon name={icons[version.how]} size={14} />
              </span>
              <div className="memory-version">
                <p>
                  <strong>{words.hows[version.how]}</strong> <Time at={version.modified} />
                  {version.current && <span className="tag">{words.current}</span>}
                </p>
                <p className="quiet">
                  <Author of={version} />
                  {isText && ` · ${bytesText(version.size)}`}
                </p>
              </div>
              <div className="memory-row">
                {isText && before && (
                  <Link
                    to="/memory/$"
                    params={{ _splat: path }}
                    search={{ view: 'history', from: versionName(before), to: name }}
                    className="button button-ghost button-sm"
                    aria-label={words.changesOf(when)}
                  >
                    {words.changes}
                  </Link>
                )}
                {isText && !version.current && mayRestore && version.version !== null && (
                  <Button
                    size="sm"
                    aria-label={words.restoreOf(when)}
                    disabled={restore.isPending}
                    onClick={() => restore.mutate({ version: name, current: versions.find(({ current }) => current) })}
                  >
                    {words.restore}
                  </Button>
                )}
              </div>
            </li>
          )
        })}
      </ol>
    </>
  )
}
