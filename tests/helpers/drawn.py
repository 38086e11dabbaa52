"""Whether what is drawn lies in its panel."""

from matplotlib.figure import Figure


def lines_beyond(figure: Figure) -> list[str]:
    """Labels of the lines that leave their panel's vertical axis."""
    found = []
    for panel in figure.axes:
        low, high = panel.get_ylim()
        for line in panel.lines:
            if any(height < low or height > high for height in line.get_ydata()):
                found.append(line.get_label())
    return found
