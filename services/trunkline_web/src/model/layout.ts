/** Where tasks stand when they are drawn with what they wait for: from the top down, by dagre. Cycles are drawn as what they are. */

import dagre from "@dagrejs/dagre";
import type { Placed } from "./team";

export const WIDTH = 172;
export const HEIGHT = 66;
const GAP = 18;
const MARGIN = 8;

export interface Drawn {
  width: number;
  height: number;
  nodes: { id: string; x: number; y: number }[];
  edges: { from: string; to: string; path: string }[];
  /** The ids of tasks that wait for each other, or for themselves. */
  cycles: string[][];
}

/** Left upper corners of the tasks, and the lines between them as paths of SVG. Tasks without any stand in rows below. */
export function layout(tasks: Placed[]): Drawn {
  const graph = new dagre.graphlib.Graph<object, { width: number; height: number }>();
  graph.setGraph({ rankdir: "TB", nodesep: GAP, ranksep: 36, marginx: MARGIN, marginy: MARGIN });
  graph.setDefaultEdgeLabel(() => ({}));
  const linked = tasks.filter((one) => one.after.length + one.before.length > 0);
  for (const { task } of linked) graph.setNode(task.id, { width: WIDTH, height: HEIGHT });
  for (const { task, after } of linked) for (const id of after) graph.setEdge(id, task.id);
  dagre.layout(graph);
  const nodes = linked.map(({ task }) => {
    const { x, y } = graph.node(task.id) as unknown as { x: number; y: number };
    return { id: task.id, x: x - WIDTH / 2, y: y - HEIGHT / 2 };
  });
  const size = graph.graph() as { width?: number; height?: number };
  const below = linked.length > 0 ? (size.height ?? 0) + GAP : MARGIN;
  const alone = tasks.filter((one) => !linked.includes(one));
  const inRow = Math.max(2, Math.floor((size.width ?? 0) / (WIDTH + GAP)));
  alone.forEach(({ task }, at) => {
    const [row, column] = [Math.floor(at / inRow), at % inRow];
    nodes.push({ id: task.id, x: MARGIN + column * (WIDTH + GAP), y: below + row * (HEIGHT + GAP) });
  });
  return {
    width: Math.max(0, ...nodes.map(({ x }) => x + WIDTH + MARGIN), linked.length > 0 ? (size.width ?? 0) : 0),
    height: Math.max(0, ...nodes.map(({ y }) => y + HEIGHT + MARGIN), linked.length > 0 ? (size.height ?? 0) : 0),
    nodes,
    edges: graph.edges().map((edge) => ({ from: edge.v, to: edge.w, path: curve(pointsOf(graph.edge(edge))) })),
    cycles: dagre.graphlib.alg.findCycles(graph).map((cycle) => [...cycle].sort(byNumber)),
  };
}

interface Point {
  x: number;
  y: number;
}

const pointsOf = (edge: unknown): Point[] => (edge as { points?: Point[] }).points ?? [];
const byNumber = (a: string, b: string): number => Number(a) - Number(b) || a.localeCompare(b);

/** A line through the points, round at its corners. */
function curve(points: Point[]): string {
  const [first, ...rest] = points.map(({ x, y }) => ({ x: Math.round(x), y: Math.round(y) }));
  const last = rest.pop();
  if (first === undefined || last === undefined) return "";
  let path = `M${first.x} ${first.y}`;
  rest.forEach((point, at) => {
    const next = rest[at + 1] ?? last;
    const half = at === rest.length - 1 ? next : { x: (point.x + next.x) / 2, y: (point.y + next.y) / 2 };
    path += ` Q${point.x} ${point.y} ${half.x} ${half.y}`;
  });
  return rest.length === 0 ? `${path} L${last.x} ${last.y}` : path;
}
