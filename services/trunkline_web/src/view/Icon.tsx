import adjustments from "heroicons/24/outline/adjustments-horizontal.svg?raw";
import archive from "heroicons/24/outline/archive-box.svg?raw";
import back from "heroicons/24/outline/arrow-left.svg?raw";
import brain from "heroicons/24/outline/light-bulb.svg?raw";
import bell from "heroicons/24/outline/bell.svg?raw";
import chart from "heroicons/24/outline/chart-bar.svg?raw";
import check from "heroicons/24/outline/check.svg?raw";
import chevron from "heroicons/24/outline/chevron-right.svg?raw";
import clip from "heroicons/24/outline/paper-clip.svg?raw";
import clock from "heroicons/24/outline/clock.svg?raw";
import dots from "heroicons/24/outline/ellipsis-horizontal.svg?raw";
import down from "heroicons/24/outline/arrow-down.svg?raw";
import edit from "heroicons/24/outline/pencil-square.svg?raw";
import fetch from "heroicons/24/outline/globe-alt.svg?raw";
import folder from "heroicons/24/outline/folder.svg?raw";
import install from "heroicons/24/outline/arrow-down-tray.svg?raw";
import inbox from "heroicons/24/outline/inbox.svg?raw";
import list from "heroicons/24/outline/list-bullet.svg?raw";
import plus from "heroicons/24/outline/plus.svg?raw";
import question from "heroicons/24/outline/question-mark-circle.svg?raw";
import read from "heroicons/24/outline/document-text.svg?raw";
import search from "heroicons/24/outline/magnifying-glass.svg?raw";
import send from "heroicons/24/outline/paper-airplane.svg?raw";
import shield from "heroicons/24/outline/shield-check.svg?raw";
import out from "heroicons/24/outline/arrow-right-start-on-rectangle.svg?raw";
import stop from "heroicons/24/outline/stop.svg?raw";
import terminal from "heroicons/24/outline/command-line.svg?raw";
import trash from "heroicons/24/outline/trash.svg?raw";
import users from "heroicons/24/outline/users.svg?raw";
import warning from "heroicons/24/outline/exclamation-triangle.svg?raw";
import wrench from "heroicons/24/outline/wrench.svg?raw";
import cross from "heroicons/24/outline/x-mark.svg?raw";

const ICONS = {
  ...{ adjustments, archive, back, bell, brain, chart, check, chevron, clip, clock, cross, dots, down, edit, fetch, folder },
  ...{ inbox, install, list, out, plus, question, read, search, send, shield, stop, terminal, trash, users, warning, wrench },
};

export type IconName = keyof typeof ICONS;

/** A picture beside words, or in a button that has its name elsewhere: readers of screens pass it by. */
export function Icon(props: { name: IconName }) {
  return <span class="icon" aria-hidden="true" innerHTML={ICONS[props.name]} />;
}
