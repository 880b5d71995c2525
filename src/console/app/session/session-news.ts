/** What the tabs of one browser tell each other about the session that they share. */
type News = 'signed-in' | 'moved' | 'signed-out'

const channelName = 'brigade-session'

/** Notifies the other tabs. */
export function tellTabs(news: News): void {
  const channel = new BroadcastChannel(channelName)
  channel.postMessage(news)
  channel.close()
}

/** Calls `listener` for news of other tabs. Returns a function that ends it. */
export function onTabNews(listener: (news: News) => void): () => void {
  const channel = new BroadcastChannel(channelName)
  channel.onmessage = event => listener(event.data as News)
  return () => channel.close()
}
